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


def printable(text: str) -> str:
    r"""Return `text` with control and unprintable characters written as escapes, e.g. `\x1b`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def shortened(text: str, width: int) -> str:
    """Return `text` cut to at most `width` characters, the cut marked by an ellipsis."""
    return text if len(text) <= width else text[: max(width - 1, 0)] + ELLIPSIS


def terminal_width() -> int | None:
    """Return the columns of standard output, or None where it is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: str = "", width: int | None = None) -> str:
    """Lay out rows in columns; the first column gives way when `width` is too small.

    Args:
        header: column titles.
        rows: one string per column; made printable here.
        right: the titles of columns aligned to the right, separated by spaces.
        width: characters per line, None for as many as needed.
    """
    cells = [list(header), *([printable(cell) for cell in row] for row in rows)]
    sizes = [max(len(row[i]) for row in cells) for i in range(len(header))]
    if width is not None:
        rest = sum(sizes[1:]) + len(GAP) * (len(sizes) - 1)
        sizes[0] = min(sizes[0], max(width - rest, len(header[0]), 8))
    to_right = [title in right.split() for title in header]
    lines = []
    for row in cells:
        fitted = [shortened(cell, size) for cell, size in zip(row, sizes, strict=True)]
        padded = [
            cell.rjust(size) if flag else cell.ljust(size)
            for cell, size, flag in zip(fitted, sizes, to_right, strict=True)
        ]
        lines.append(GAP.join(padded).rstrip())
    return "\n".join(lines)


def _scaled(value: int, units: Sequence[str], gap: str) -> str:
    scaled, unit = float(value), 0
    while scaled >= 999.5 and unit < len(units) - 1:
        scaled, unit = scaled / 1000, unit + 1
    if unit == 0:
        return f"{value}{gap}{units[0]}"
    digits = 2 if scaled < 9.995 else 1 if scaled < 99.95 else 0
    return f"{scaled:.{digits}f}{gap}{units[unit]}"
