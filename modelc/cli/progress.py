"""A progress bar on standard error; nothing where standard error is not a terminal."""

import os
import shutil
import sys
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

from modelc.cli.text import bytes_text, duration_text, printable, shortened

REDRAW_S = 0.1
BAR_COLS = 24
PACE_S = 5.0  # the rate is that of the last seconds


class ProgressBar:
    """Draws `label  [####    ]  41%  27 of 66 MB` in place, and wipes it when its `with` block ends.

    An instance is the callback `progress(done, total, label)` that long work takes.

    Args:
        amount: how an amount reads; bytes unless told otherwise.
        stream: where to draw; None for standard error.
        rate: whether to tell how fast it goes and how long it will take.
        quiet: draw nothing.
    """

    def __init__(
        self,
        amount: Callable[[int], str] = bytes_text,
        stream: TextIO | None = None,
        *,
        rate: bool = False,
        quiet: bool = False,
    ) -> None:
        self._amount = amount
        self._pace = Pace() if rate else None
        self._stream = sys.stderr if stream is None else stream
        self._shown = not quiet and self._stream.isatty() and os.environ.get("TERM") != "dumb"
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
        pace = "" if self._pace is None else self._pace.text(done, total, now_s)
        self._stream.write("\r\x1b[K" + bar_line(done, total, label, self._amount, pace, width)[:width])
        self._stream.flush()
        self._drawn = True


class Pace:
    """How fast an amount has grown in the last seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()  # (time, amount), the oldest first

    def text(self, done: int, total: int, now_s: float) -> str:
        """Return `52.1 MB/s  1:05 left`, or nothing before that can be told; to be called with each new amount."""
        if self._seen and done < self._seen[-1][1]:  # something else has begun
            self._seen.clear()
        self._seen.append((now_s, done))
        while now_s - self._seen[0][0] > PACE_S and len(self._seen) > 2:
            self._seen.popleft()
        began_s, before = self._seen[0]
        if done == before or now_s - began_s < REDRAW_S:
            return ""
        per_s = (done - before) / (now_s - began_s)
        left = f"  {duration_text((total - done) / per_s)} left" if total > done else ""
        return f"{bytes_text(round(per_s))}/s{left}"


def bar_line(
    done: int, total: int, label: str, amount: Callable[[int], str], pace: str = "", width: int | None = None
) -> str:
    """Return the bar's text for one state; where `width` is too small for all of it, it goes without the bar."""
    behind = f"  {pace}" if pace else ""
    if total <= 0:
        return f"{printable(label)}  {amount(done)}{behind}"
    part = min(max(done / total, 0.0), 1.0)
    bar = ("#" * round(part * BAR_COLS)).ljust(BAR_COLS)
    amounts = f"{part:4.0%}  {amount(done)} of {amount(total)}{behind}"
    whole = f"{printable(label)}  [{bar}] {amounts}"
    if width is None or len(whole) <= width:
        return whole
    short = f"{part:4.0%}{behind or f'  {amount(done)} of {amount(total)}'}"
    return f"{shortened(printable(label), max(width - len(short) - 1, 8))} {short}"
