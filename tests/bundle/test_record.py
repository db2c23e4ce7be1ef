import pytest

from modelc.bundle.record import MAGIC, MAX_LIBRARIES, R_LIBRARY, RECORD_AT, WORDS, Span, record, sums
from modelc.errors import UnsupportedError

HEAD = bytes(RECORD_AT)


def words_of(data: bytes) -> list[int]:
    return [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]


def test_the_two_sums_are_those_of_the_words_and_of_their_running_sum_modulo_2_64() -> None:
    data = bytes(range(256)) * 3
    first = second = 0
    for word in words_of(data):
        first = (first + word) % 2**64
        second = (second + first) % 2**64
    assert sums(data) == (first, second)
    assert sums(b"") == (0, 0)


def test_words_in_another_order_have_another_second_sum() -> None:
    data = b"12345678abcdefgh"
    swapped = data[8:] + data[:8]
    assert sums(data)[0] == sums(swapped)[0]
    assert sums(data)[1] != sums(swapped)[1]


def test_a_record_says_where_the_libraries_are() -> None:
    made = words_of(record(HEAD, 1 << 40, 36, b"plain...", 1 << 35, [Span(1 << 35, 5), Span((1 << 35) + 5, 3)]))
    assert len(made) == WORDS
    assert made[0] == MAGIC
    assert made[1:3] == list(sums(b"".join(word.to_bytes(8, "little") for word in made[3:])))
    assert made[3:5] == [1 << 40, 36]
    assert made[5:7] == [0, 0]
    assert made[7:11] == [1 << 35, 8, *sums(b"plain...")]
    assert made[11 : R_LIBRARY + 4] == [2, 1 << 35, 5, (1 << 35) + 5, 3]


def test_more_libraries_than_it_has_room_for_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=f"at most {MAX_LIBRARIES}"):
        record(HEAD, 1, 17, b"", 0, [Span(0, 1)] * (MAX_LIBRARIES + 1))
