"""Finished sequences whose keys and values are kept for prompts that begin like them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from modelc.kernels.env import PAGE
from modelc.runtime.pages import PagePool


@dataclass(frozen=True, slots=True)
class Prefix:
    """Tokens whose keys and values are in `pages`."""

    tokens: tuple[int, ...]
    pages: tuple[int, ...]


class PrefixCache:
    """At most `limit` sequences, least recently used out first. Holds its pages in `pool`."""

    def __init__(self, pool: PagePool, limit: int = 32) -> None:
        self._pool = pool
        self._limit = limit
        self._entries: OrderedDict[tuple[int, ...], Prefix] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def longest(self, prompt: Sequence[int]) -> tuple[Prefix | None, int]:
        """The entry that shares most tokens with the start of `prompt`, and how many; the entry counts as used."""
        best, length = None, 0
        for entry in self._entries.values():
            common = _common(entry.tokens, prompt)
            if common > length:
                best, length = entry, common
        if best is not None:
            self._entries.move_to_end(best.tokens)
        return best, length

    def keep(self, tokens: Sequence[int], pages: Sequence[int]) -> None:
        """Keep a sequence; takes over the caller's hold on `pages`. Entries that it continues are dropped."""
        key = tuple(tokens)
        for old in [e for e in self._entries if key[: len(e)] == e]:
            self._drop(old)
        used = (len(key) + PAGE - 1) // PAGE
        for page in pages[used:]:
            self._pool.give(page)
        self._entries[key] = Prefix(key, tuple(pages[:used]))
        while len(self._entries) > self._limit:
            self.drop_oldest()

    def drop_oldest(self) -> bool:
        """Give up the least recently used entry; False when there is none."""
        if not self._entries:
            return False
        self._drop(next(iter(self._entries)))
        return True

    def _drop(self, key: tuple[int, ...]) -> None:
        for page in self._entries.pop(key).pages:
            self._pool.give(page)


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return i
    return min(len(a), len(b))
