from modelc.text.word_piece import WordPiece

BEGINNINGS = {"un": 1, "u": 2, "unab": 3, "é": 4}
CONTINUATIONS = {"able": 5, "le": 6, "n": 7}


def encode(word: str, unknown_id: int | None = 0, max_word_chars: int = 100) -> tuple[int, ...]:
    return WordPiece(BEGINNINGS, CONTINUATIONS, unknown_id, max_word_chars).encode(word)


def test_the_longest_beginning_is_taken_then_the_longest_continuation() -> None:
    assert encode("unable") == (3, 6)
    assert encode("un") == (1,)
    assert encode("unn") == (1, 7)
    assert encode("") == ()


def test_a_word_that_cannot_be_cut_to_its_end_is_unknown() -> None:
    assert encode("unabl") == (0,)
    assert encode("able") == (0,)
    assert encode("able", unknown_id=None) == ()


def test_an_overlong_word_is_unknown() -> None:
    assert encode("u" + "n" * 99) == (1, *[7] * 98)
    assert encode("u" + "n" * 100) == (0,)
    assert encode("un", max_word_chars=1) == (0,)
