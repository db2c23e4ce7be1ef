import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelc.errors import BadFileError, UnsupportedError
from modelc.text.hf import pattern
from modelc.text.hf.pattern import Pattern


def test_text_is_cut_into_matches_and_what_is_between() -> None:
    assert Pattern("[0-9]+", "p").pieces("a12b") == [("a", False), ("12", True), ("b", False)]
    assert Pattern("[0-9]+", "p").cut("12b") == ["12", "b"]


def test_what_is_put_in_is_text_and_no_template() -> None:
    assert Pattern("a", "p").replace("bab", "\\g<0>") == "b\\g<0>b"


@given(st.sampled_from(["a", "a*", "(a)|b", "(?=b)", "", "a+(b)?"]), st.text("abc", max_size=9))
def test_the_pieces_joined_are_the_text(source: str, text: str) -> None:
    found = Pattern(source, "p")
    assert "".join(found.cut(text)) == "".join(piece for piece, _ in found.pieces(text)) == text


@pytest.mark.parametrize("source", ["(", "[", "a{99999999999999999999}", "(?P<a>a)(?P<a", "\\p{Nonsense}"])
def test_a_pattern_that_cannot_be_compiled_is_named(source: str) -> None:
    with pytest.raises(UnsupportedError, match=r"cannot be compiled .*'model\.x'"):
        Pattern(source, "model.x")


def test_an_overlong_pattern_is_refused() -> None:
    with pytest.raises(BadFileError, match="too long"):
        Pattern("a" * (pattern.MAX_PATTERN_CHARS + 1), "p")


def test_a_pattern_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern, "MAX_SECONDS", 0.05)
    endless = Pattern("(?:a|b|ab)+(?<=x)c", "p")
    for use in (endless.cut, endless.pieces, lambda text: endless.replace(text, "")):
        with pytest.raises(BadFileError, match="takes too long: 'p'"):
            use("ab" * 40 + "c")
