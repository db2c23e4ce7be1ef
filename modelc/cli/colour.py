"""Colours, where a terminal shows them and nobody has said NO_COLOR."""

import os
from typing import TextIO

BOLD = "1"
DIM = "2"
RED = "31"


def paint(text: str, style: str, stream: TextIO) -> str:
    """Return `text` as it is to be written to `stream`: with the style where it can be shown.

    Args:
        text: what to write.
        style: one of the codes of this module.
        stream: where it goes.
    """
    if not text or not shows_colour(stream):
        return text
    return f"\x1b[{style}m{text}\x1b[0m"


def shows_colour(stream: TextIO) -> bool:
    """Return whether `stream` is a terminal that takes escape sequences, and colours are wanted."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
