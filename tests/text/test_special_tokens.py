import time

from hypothesis import given
from hypothesis import strategies as st

from modelc.text.special_tokens import MAX_SPECIAL_CHARS, SpecialTokens


def split(text: str, *tokens: str) -> list[str | int]:
    return list(SpecialTokens({token: id for id, token in enumerate(tokens)}).split(text))


def test_text_between_and_around_is_kept() -> None:
    assert split("a<s>b</s>", "<s>", "</s>") == ["a", 0, "b", 1]
    assert split("<s><s>", "<s>") == [0, 0]


def test_no_tokens_leaves_the_text_whole() -> None:
    assert split("abc") == ["abc"]
    assert split("") == []


def test_the_longest_token_at_a_place_wins() -> None:
    assert split("a\n\n\nb\n", "\n", "\n\n") == ["a", 1, 0, "b", 0]
    assert split("<a><ab>", "<a>", "<a", "<ab>") == [0, 2]
    assert split("xyz", "x", "xyz", "xyq") == [1]
    assert split("xyw", "x", "xyz", "xyq") == [0, "yw"]


def test_the_leftmost_token_wins_over_a_longer_one() -> None:
    assert split("abcd", "ab", "bcd") == [0, "cd"]


def test_part_of_a_token_is_text() -> None:
    assert split("<|im_st<|im_start|>", "<|im_start|>") == ["<|im_st", 0]


def test_empty_and_overlong_texts_are_never_recognised() -> None:
    long = "y" * (MAX_SPECIAL_CHARS + 1)
    assert split(f"x{long}", "", long) == [f"x{long}"]


def test_many_tokens_do_not_slow_the_search_down() -> None:
    special = SpecialTokens({f"<unused{number}>": number for number in range(5000)})
    text = "<b>some text</b> " * 20_000
    start = time.perf_counter()
    assert list(special.split(text)) == [text]
    assert time.perf_counter() - start < 2.0


@given(st.text("ab<", max_size=40), st.lists(st.text("ab<", min_size=1, max_size=4), unique=True, max_size=5))
def test_it_finds_what_a_search_at_every_place_finds(text: str, tokens: list[str]) -> None:
    expected: list[str | int] = []
    at = begin = 0
    while at < len(text):
        best = max((token for token in tokens if text.startswith(token, at)), key=len, default="")
        if best:
            expected += [text[begin:at]] * (begin < at) + [tokens.index(best)]
            begin = at + len(best)
        at += len(best) or 1
    expected += [text[begin:]] * (begin < len(text))
    assert split(text, *tokens) == expected
