import pytest

from modelc.cli.text import bytes_text, count_text, duration_text, printable, safe_text, shortened, table


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (98_362_432, "98.4 MB"),
        (999_499, "999 kB"),
        (999_500, "1.00 MB"),
        (1 << 62, "4.61 EB"),
        (10**22, "10000 EB"),
    ],
)
def test_sizes_have_three_digits(n_bytes: int, text: str) -> None:
    assert bytes_text(n_bytes) == text


@pytest.mark.parametrize(("count", "text"), [(75, "75"), (134_515_008, "135M"), (1_240_000_000, "1.24B")])
def test_counts_have_three_digits(count: int, text: str) -> None:
    assert count_text(count) == text


def test_text_that_could_steer_a_terminal_is_escaped() -> None:
    assert printable("é 日本 \x1b[31m\r\n\u202e\udcff") == "é 日本 \\x1b[31m\\r\\n\\u202e\\udcff"


def test_shortened_text_fits_and_shows_the_cut() -> None:
    assert [shortened("abcdef", width) for width in (6, 5, 1)] == ["abcdef", "abcd…", "…"]


def test_a_table_gives_way_in_its_first_column() -> None:
    rows = [["a.very.long.name.indeed", "1"], ["b", "1000"]]
    assert table(["NAME", "SIZE"], rows, right="SIZE", width=18).splitlines() == [
        "NAME          SIZE",
        "a.very.long…     1",
        "b             1000",
    ]


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0:00"), (7, "0:07"), (65, "1:05"), (7380, "2:03:00")])
def test_durations_read_as_on_a_clock(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_safe_text_keeps_line_breaks_and_no_other_control_characters() -> None:
    assert safe_text("a\n\tb\x1b[31m\r") == "a\n\tb\\x1b[31m\\r"
