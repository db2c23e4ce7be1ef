import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelc.text import StopStrings


def run(pieces: list[str], *stops: str) -> tuple[list[str], str | None]:
    matcher = StopStrings(stops)
    return [*map(matcher.push, pieces), matcher.flush()], matcher.matched


def test_text_before_the_match_is_returned_and_nothing_after() -> None:
    assert run(["one STOP two", "three"], "STOP") == (["one ", "", ""], "STOP")


def test_a_match_may_cross_pieces() -> None:
    assert run(["a</", "tool", ">b"], "</tool>") == (["a", "", "", ""], "</tool>")


def test_only_what_may_begin_a_match_is_held_back() -> None:
    assert run(["ab#", "#c", "#"], "###") == (["ab", "##c", "", "#"], None)
    assert run(["aab"], "aac", "b!") == (["aa", "b"], None)


def test_without_stop_strings_text_passes() -> None:
    assert run(["a", "b"]) == (["a", "b", ""], None)
    assert run(["a", "b"], "") == (["a", "b", ""], None)


@pytest.mark.parametrize("pieces", [["xabcd"], ["xab", "cd"], [*"xabcd"]])
def test_the_first_to_be_completed_wins_however_the_text_is_cut(pieces: list[str]) -> None:
    shown, matched = run(pieces, "abcd", "bc")
    assert ("".join(shown), matched) == ("xa", "bc")


def test_of_two_completed_at_once_the_longer_wins() -> None:
    assert run(["xabc"], "bc", "abc") == (["x", ""], "abc")


def test_a_failed_beginning_may_contain_the_true_one() -> None:
    assert run([*"aaab"], "aab") == (["", "", "a", "", ""], "aab")


def expected(text: str, stops: list[str]) -> tuple[str, str | None]:
    for end in range(1, len(text) + 1):
        done = [stop for stop in stops if text[:end].endswith(stop)]
        if done:
            stop = max(done, key=len)
            return text[: end - len(stop)], stop
    return text, None


@given(st.lists(st.text("ab", max_size=5), max_size=8), st.lists(st.text("ab", min_size=1, max_size=4), max_size=3))
def test_the_result_is_that_of_a_search_at_every_character(pieces: list[str], stops: list[str]) -> None:
    shown, matched = run(pieces, *stops)
    assert ("".join(shown), matched) == expected("".join(pieces), stops)


@given(st.lists(st.text("ab", max_size=5), max_size=8), st.text("ab", min_size=1, max_size=4))
def test_what_is_held_back_begins_the_stop_string(pieces: list[str], stop: str) -> None:
    matcher = StopStrings([stop])
    shown = "".join(map(matcher.push, pieces))
    held = matcher.flush()
    assert stop.startswith(held)
    assert len(held) < len(stop)
    assert matcher.matched or shown + held == "".join(pieces)
