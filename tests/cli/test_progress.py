import io

import pytest

from modelc.cli.progress import Pace, ProgressBar, bar_line
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


def test_the_pace_is_that_of_the_last_seconds() -> None:
    pace = Pace()
    assert pace.text(0, 1000, 0.0) == ""
    assert pace.text(100, 1000, 1.0) == "100 B/s  0:09 left"
    assert pace.text(300, 1000, 2.0) == "150 B/s  0:05 left"
    assert [pace.text(300 + 10 * i, 1000, 2.0 + i) for i in range(1, 10)][-1] == "10 B/s  1:01 left"
    assert pace.text(1000, 1000, 12.0).endswith("B/s")
    assert pace.text(5, 10, 13.0) == ""  # something else has begun


def test_a_pace_without_a_total_has_no_end() -> None:
    pace = Pace()
    pace.text(0, 0, 0.0)
    assert pace.text(5_000_000, 0, 1.0) == "5.00 MB/s"


def test_a_narrow_terminal_gets_the_figures_without_the_bar() -> None:
    line = bar_line(41_000_000, 100_000_000, "downloading model.gguf", bytes_text, "5.00 MB/s  0:12 left", 40)
    assert line == "downloading …  41%  5.00 MB/s  0:12 left"
    assert len(line) <= 40
