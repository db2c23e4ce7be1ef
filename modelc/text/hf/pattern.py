"""A pattern from a `tokenizer.json`: compiled with `regex`, and stopped when it takes unreasonably long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import regex

from modelc.errors import BadFileError, UnsupportedError

MAX_PATTERN_CHARS = 10_000
MAX_SECONDS = 10.0


class Pattern:
    """A pattern, and where it stands.

    Args:
        source: In the syntax of `regex`.
        where: What to name in errors.

    Raises:
        BadFileError: The pattern is too long; from the methods: it takes longer than `MAX_SECONDS` on one text.
        UnsupportedError: It cannot be compiled.
    """

    def __init__(self, source: str, where: str) -> None:
        self._where = where
        if len(source) > MAX_PATTERN_CHARS:
            raise BadFileError("a pattern is too long", param=where, expected=f"{MAX_PATTERN_CHARS} characters")
        try:
            self._compiled = regex.compile(source)
            # One group around the pattern: split() gives what is between the matches, and the matches.
            self._around = None if self._compiled.groups else regex.compile(f"({source})")
        except (regex.error, ValueError, OverflowError, RecursionError) as error:
            raise UnsupportedError(f"a pattern of tokenizer.json cannot be compiled ({error})", param=where) from error

    def cut(self, text: str) -> list[str]:
        """Matches and what is between them, in order; joined they are `text`."""
        if self._around is None:
            return [piece for piece, _ in self.pieces(text)]
        with self._watched():
            return [piece for piece in self._around.split(text, timeout=MAX_SECONDS) if piece]

    def pieces(self, text: str) -> list[tuple[str, bool]]:
        """Like `cut`, each with whether it is a match."""
        found: list[tuple[str, bool]] = []
        done = 0
        with self._watched():
            for match in self._compiled.finditer(text, timeout=MAX_SECONDS):
                start, end = match.span()
                if start > done:
                    found.append((text[done:start], False))
                if end > start:
                    found.append((text[start:end], True))
                done = end
        if done < len(text):
            found.append((text[done:], False))
        return found

    def replace(self, text: str, content: str) -> str:
        """`text` with `content` in the place of each match."""
        with self._watched():
            replaced: str = self._compiled.sub(lambda _: content, text, timeout=MAX_SECONDS)
        return replaced

    @contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except TimeoutError as error:
            raise BadFileError(
                "a pattern of tokenizer.json takes too long", param=self._where, expected=f"{MAX_SECONDS:g} s"
            ) from error
