import pytest

from modelc.cli.word_wrap import WordWrap, columns


def wrapped(pieces: list[str], width: int = 10) -> str:
    wrap = WordWrap(width)
    return "".join(map(wrap.push, pieces)) + wrap.flush()


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one two three", ["one two", "three"]),
        ("exactly 10 x", ["exactly 10", "x"]),
        ("a\n\n  b  c", ["a", "", "  b  c"]),
        ("a-very-long-word here", ["a-very-long-word", "here"]),
        ("日本語日本語", ["日本語日本", "語"]),
        ("", [""]),
    ],
)
def test_lines_break_between_words(text: str, lines: list[str]) -> None:
    assert wrapped([text]) == "\n".join(lines)
    assert wrapped(list(text)) == "\n".join(lines)  # however it comes


def test_a_word_is_held_back_until_it_is_whole() -> None:
    wrap = WordWrap(10)
    assert [wrap.push(piece) for piece in ("The", " cap", "ital", " is")] == ["", "The", "", "\ncapital"]
    assert wrap.flush() == " is"


def test_columns_are_those_of_a_terminal() -> None:
    assert columns("ab") == 2
    assert columns("日本") == 4
    assert columns("e\u0301") == 1
