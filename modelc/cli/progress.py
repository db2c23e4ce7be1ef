"""A progress bar on standard error; nothing where standard error is not a terminal."""

import os
import shutil
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

from modelc.cli.text import bytes_text, printable

REDRAW_S = 0.1
BAR_COLS = 24


class ProgressBar:
    """Draws `label  [####    ]  41%  27 of 66 MB` in place, and wipes it when its `with` block ends.

    An instance is the callback `progress(done, total, label)` that long work takes.

    Args:
        amount: how an amount reads; bytes unless told otherwise.
        stream: where to draw; None for standard error.
    """

    def __init__(self, amount: Callable[[int], str] = bytes_text, stream: TextIO | None = None) -> None:
        self._amount = amount
        self._stream = sys.stderr if stream is None else stream
        self._shown = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._next_s = 0.0
        self._drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def __call__(self, done: int, total: int, label: str) -> None:
        """Draw the state, at most every `REDRAW_S` seconds; a total of 0 means unknown."""
        now_s = time.monotonic()
        if not self._shown or (now_s < self._next_s and done != total):
            return
        self._next_s = now_s + REDRAW_S
        width = shutil.get_terminal_size().columns - 1
        self._stream.write("\r\x1b[K" + bar_line(done, total, label, self._amount)[:width])
        self._stream.flush()
        self._drawn = True


def bar_line(done: int, total: int, label: str, amount: Callable[[int], str]) -> str:
    """Return the bar's text for one state."""
    if total <= 0:
        return f"{printable(label)}  {amount(done)}"
    part = min(max(done / total, 0.0), 1.0)
    bar = ("#" * round(part * BAR_COLS)).ljust(BAR_COLS)
    return f"{printable(label)}  [{bar}] {part:4.0%}  {amount(done)} of {amount(total)}"
