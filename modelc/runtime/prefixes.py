"""Finished sequences whose keys and values are kept for prompts that begin like them: a radix tree over pages.

A node stands for one page and its up to 64 tokens; the way from the root spells a sequence. Sequences that begin
alike share nodes, and so pages. A sequence's end is an entry; the least recently used entry goes first, with the
nodes that only it needs. What different engines computed is kept apart: adapters change keys and values.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from modelc.kernels.env import PAGE
from modelc.runtime.pages import PagePool


@dataclass(eq=False, slots=True)
class _Node:
    tokens: tuple[int, ...]
    page: int
    parent: _Node | None
    children: dict[tuple[int, ...], _Node] = field(default_factory=dict)
    used: int = 0  # when it was last found or kept; only compared
    is_end: bool = False


class PrefixCache:
    """At most `limit` sequences. Holds the pages of its nodes in `pool`."""

    def __init__(self, pool: PagePool, limit: int = 32) -> None:
        self._pool = pool
        self._limit = limit
        self._roots: dict[Hashable, _Node] = {}
        self._ends: set[_Node] = set()
        self._clock = 0

    def __len__(self) -> int:
        return len(self._ends)

    def longest(self, prompt: Sequence[int], maker: Hashable = None) -> tuple[list[int], int]:
        """The longest prefix of `prompt` kept by `maker`: its pages (the last may be used in part), and its length."""
        node, pages, length = self._root(maker), list[int](), 0
        self._clock += 1
        while True:
            rest = tuple(prompt[length : length + PAGE])
            child = node.children.get(rest)
            if child is None:
                child, common = _nearest(node, rest)
                if child is not None:
                    child.used = self._clock
                    pages.append(child.page)
                return pages, length + common
            node = child
            node.used = self._clock
            pages.append(node.page)
            length += len(rest)
            if len(rest) < PAGE:
                return pages, length

    def keep(self, tokens: Sequence[int], pages: Sequence[int], maker: Hashable = None) -> None:
        """Keep a sequence; takes over the caller's hold on `pages`. An end that it continues is no longer one."""
        self._clock += 1
        node = root = self._root(maker)
        for start in range(0, len(tokens), PAGE):
            piece = tuple(tokens[start : start + PAGE])
            page = pages[start // PAGE]
            child = node.children.get(piece)
            if child is None:
                child = node.children[piece] = _Node(piece, page, node)
                self._absorb(node, child)
            else:
                self._pool.give(page)
            child.used = self._clock
            self._unmark(node)
            node = child
        for page in pages[(len(tokens) + PAGE - 1) // PAGE :]:
            self._pool.give(page)
        if node is not root and not node.children:
            node.is_end = True
            self._ends.add(node)
        while len(self._ends) > self._limit:
            self.drop_oldest()

    def count_idle(self) -> int:
        """Pages that nobody else holds: so many are free when every entry is given up."""
        count, nodes = 0, [child for root in self._roots.values() for child in root.children.values()]
        while nodes:
            node = nodes.pop()
            nodes += node.children.values()
            count += not self._pool.is_shared(node.page)
        return count

    def drop_oldest(self) -> bool:
        """Give up the least recently used entry; False when there is none."""
        if not self._ends:
            return False
        self._drop(min(self._ends, key=lambda end: end.used))
        return True

    def forget(self, maker: Hashable) -> None:
        """Give up all that `maker` computed."""
        root = self._roots.pop(maker, None)
        for node in [end for end in self._ends if _root_of(end) is root]:
            self._drop(node)

    def _root(self, maker: Hashable) -> _Node:
        return self._roots.setdefault(maker, _Node((), -1, None))

    def _drop(self, node: _Node) -> None:
        self._unmark(node)
        while node.parent is not None and not node.children and not node.is_end:
            parent = node.parent
            del parent.children[node.tokens]
            self._pool.give(node.page)
            node = parent

    def _absorb(self, node: _Node, new: _Node) -> None:
        """Drop a sibling whose tokens the new node begins with: a partly filled page that was written on."""
        for old in [c for c in node.children.values() if c is not new and new.tokens[: len(c.tokens)] == c.tokens]:
            self._unmark(old)
            del node.children[old.tokens]
            self._pool.give(old.page)

    def _unmark(self, node: _Node) -> None:
        if node.is_end:
            node.is_end = False
            self._ends.discard(node)


def _root_of(node: _Node) -> _Node:
    while node.parent is not None:
        node = node.parent
    return node


def _nearest(node: _Node, rest: tuple[int, ...]) -> tuple[_Node | None, int]:
    """The child that shares most tokens with `rest`, and how many; None when none shares any."""
    best, length = None, 0
    for child in node.children.values():
        common = _common(child.tokens, rest)
        if common > length:
            best, length = child, common
    return best, length


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return i
    return min(len(a), len(b))
