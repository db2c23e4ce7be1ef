"""Finding special tokens in text: the leftmost match, and there the longest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

MAX_SPECIAL_CHARS = 256


class SpecialTokens:
    """A set of token texts that are recognised in text before anything else is done to it.

    Args:
        ids: Id of each text. Empty texts and texts over `MAX_SPECIAL_CHARS` characters are never recognised.
    """

    def __init__(self, ids: Mapping[str, int]) -> None:
        self._ids = {text: token for text, token in ids.items() if 0 < len(text) <= MAX_SPECIAL_CHARS}
        lengths: dict[str, set[int]] = {}
        for text in self._ids:
            lengths.setdefault(text[:2], set()).add(len(text))
        for start, found in lengths.items():
            found.update(lengths.get(start[0], ()))
        # Most text has few places where two characters begin a special token; only those are looked up.
        self._lengths = {start: sorted(found, reverse=True) for start, found in lengths.items()}
        self._start = re.compile("|".join(map(re.escape, sorted(lengths, reverse=True)))) if lengths else None

    def split(self, text: str) -> Iterator[str | int]:
        """Cut `text` at its special tokens: non-empty strings between them, ids for them."""
        done = 0
        for at, token, length in self.find(text):
            if at > done:
                yield text[done:at]
            yield token
            done = at + length
        if done < len(text):
            yield text[done:]

    def find(self, text: str) -> Iterator[tuple[int, int, int]]:
        """The special tokens of `text`, none over another: place, id, length in characters."""
        start = self._start.search(text) if self._start else None
        while start and self._start:
            at = start.start()
            token, length = self._longest(text, at)
            if length:
                yield at, token, length
            start = self._start.search(text, at + (length or 1))

    def _longest(self, text: str, at: int) -> tuple[int, int]:
        for length in self._lengths.get(text[at : at + 2]) or self._lengths[text[at]]:
            token = self._ids.get(text[at : at + length])
            if token is not None:
                return token, length
        return 0, 0
