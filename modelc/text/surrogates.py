"""Lone surrogates, which Python's text may hold and UTF-8 may not."""

from __future__ import annotations


def without_surrogates(text: str) -> str:
    """`text` with halves of a pair that belong together joined, and U+FFFD for those alone."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
