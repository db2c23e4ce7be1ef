"""Text for a terminal: sizes and counts for people, tables that fit, strings that cannot steer it."""

import shutil
import sys
from collections.abc import Sequence

ELLIPSIS = "…"
GAP = "  "


def bytes_text(n_bytes: int) -> str:
    """Return a size in decimal units with three digits: `999 B`, `66.3 MB`, `1.02 GB`."""
    return _scaled(n_bytes, ("B", "kB", "MB", "GB", "TB", "PB", "EB"), " ")


def count_text(count: int) -> str:
    """Return a count in decimal units with three digits: `576`, `135M`, `1.24B`."""
    return _scaled(count, ("", "K", "M", "B", "T", "Q"), "")


def duration_text(seconds: float) -> str:
    """Return a time as a clock shows it: `0:07`, `1:05`, `2:03:00`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def printable(text: str) -> str:
    r"""Return `text` with control and unprintable characters written as escapes, e.g. `\x1b`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def safe_text(text: str) -> str:
    """Return `text` as `printable` does, with its line breaks and tabs left as they are."""
    return "".join(c if c in "\n\t" else printable(c) for c in text)


def shortened(text: str, width: int) -> str:
    """Return `text` cut to at most `width` characters, the cut marked by an ellipsis."""
    return text if len(text) <= width else text[: max(width - 1, 0)] + ELLIPSIS


def terminal_width() -> int | None:
    """Return the columns of standard output, or None where it is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: str = "",
    width: int | None = None,
    gives_way: Sequence[str] = (),
) -> str:
    """Lay out rows in columns; where `width` is too small, columns are left out, then the first one is cut.

    Args:
        header: column titles.
        rows: one string per column; made printable here.
        right: the titles of columns aligned to the right, separated by spaces.
        width: characters per line, None for as many as needed.
        gives_way: titles of columns that may be left out, in this order.
    """
    cells = [list(header), *([printable(cell) for cell in row] for row in rows)]
    sizes = [max(len(row[i]) for row in cells) for i in range(len(header))]
    shown = list(range(len(header)))
    if width is not None:
        for title in gives_way:
            if _line_width(sizes, shown) > width:
                shown.remove(header.index(title))
        rest = _line_width(sizes, shown) - sizes[0]
        sizes[0] = min(sizes[0], max(width - rest, len(header[0]), 8))
    to_right = [title in right.split() for title in header]
    lines = []
    for row in cells:
        fitted = [(shortened(row[i], sizes[i]), sizes[i], to_right[i]) for i in shown]
        padded = [cell.rjust(size) if flag else cell.ljust(size) for cell, size, flag in fitted]
        lines.append(GAP.join(padded).rstrip())
    return "\n".join(lines if width is None else (shortened(line, width) for line in lines))


def _line_width(sizes: Sequence[int], shown: Sequence[int]) -> int:
    return sum(sizes[i] for i in shown) + len(GAP) * (len(shown) - 1)


def _scaled(value: int, units: Sequence[str], gap: str) -> str:
    scaled, unit = float(value), 0
    while scaled >= 999.5 and unit < len(units) - 1:
        scaled, unit = scaled / 1000, unit + 1
    if unit == 0:
        return f"{value}{gap}{units[0]}"
    digits = 2 if scaled < 9.995 else 1 if scaled < 99.95 else 0
    return f"{scaled:.{digits}f}{gap}{units[unit]}"
