import io

import pytest

from modelc.cli.progress import ProgressBar, bar_line
from modelc.cli.text import bytes_text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_shows_label_share_and_sizes() -> None:
    assert (
        bar_line(41_000_000, 100_000_000, "packing", bytes_text)
        == f"packing  [{'#' * 10}{' ' * 14}]  41%  41.0 MB of 100 MB"
    )
    assert bar_line(5, 5, "compiling", str) == f"compiling  [{'#' * 24}] 100%  5 of 5"
    assert bar_line(7000, 0, "fetching", bytes_text) == "fetching  7.00 kB"


def test_nothing_is_written_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, dumb = io.StringIO(), Terminal()
    monkeypatch.setenv("TERM", "dumb")
    for stream in (pipe, dumb):
        with ProgressBar(stream=stream) as bar:
            bar(1, 1, "packing")
        assert stream.getvalue() == ""


def test_a_terminal_sees_one_line_that_is_wiped_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    terminal = Terminal()
    with ProgressBar(stream=terminal) as bar:
        for done in range(101):
            bar(done, 100, "packing a model")
    drawn = terminal.getvalue().split("\r\x1b[K")
    assert drawn[0] == drawn[-1] == ""
    assert 2 <= len(drawn[1:-1]) < 20
    assert all(len(line) < 40 for line in drawn)
