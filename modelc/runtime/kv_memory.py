"""Keys and values of all sequences: which pages and slots each has, what is shared, what is kept for later prompts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from modelc.errors import BusyError
from modelc.kernels.env import PAGE
from modelc.runtime.engine import Engine
from modelc.runtime.generation import Request
from modelc.runtime.pages import PagePool
from modelc.runtime.prefixes import PrefixCache

KEPT_SHARE = 0.75  # of the context stays when a sequence is shifted


def pages_of(positions: int) -> int:
    """Pages that so many positions take."""
    return (positions + PAGE - 1) // PAGE


class KvMemory:
    """Slots and pages of the engine.

    Attributes:
        pool: the pages.
        prefixes: finished sequences.

    Args:
        engine: whose page table is written.
        n_pages: pages it has.
        shifts: whether sequences are shifted: pages that they share must have room to become their own.
        reserved_slots: slots at the end of the table that are not given out.
    """

    def __init__(self, engine: Engine, n_pages: int, shifts: bool = False, reserved_slots: int = 1) -> None:
        self.pool = PagePool(n_pages)
        self.prefixes = PrefixCache(self.pool)
        self._engine = engine
        self._shifts = shifts
        self._promised = 0  # pages of the active sequences, shared ones counted for each
        self._free_slots = list(range(engine.n_slots - reserved_slots - 1, -1, -1))

    @property
    def has_slot(self) -> bool:
        """Whether another sequence may begin."""
        return bool(self._free_slots)

    def reserve(self, request: Request, active: Sequence[Request]) -> bool:
        """Give a slot and pages for the whole of prompt and answer, so that a sequence that began can always end.

        Pages that a kept or an active sequence has for the same beginning are shared.

        Returns:
            False when there are not enough pages now.
        """
        n_pages = pages_of(min(request.last_position, self._engine.program.n_ctx))
        if self._shifts and self._promised + n_pages > self.pool.n_pages:
            return False
        pages, common = self._best_start(request, active)
        common = min(common, len(request.tokens) - 1)  # the last token is computed anew, for its logits
        if request.sampling.prompt_logprobs:
            common = 0  # the logits of all are wanted
        whole = common - common % PAGE  # takes a page less: the one in which the common part ends need not be copied
        return self._begin(request, n_pages, pages, common) or (
            whole < common and self._begin(request, n_pages, pages, whole)
        )

    def release(self, request: Request, keep: bool) -> None:
        """Take back slot and pages; `keep`: what was computed stays for later prompts (not of a shifted sequence)."""
        self._promised -= len(request.pages)
        self._free_slots.append(request.slot)
        request.slot = -1
        if keep and request.computed and not request.dropped:
            self.prefixes.keep(request.tokens[: request.computed], request.pages, request.engine)
        else:
            for page in request.pages:
                self.pool.give(page)

    def shift(self, request: Request, anchor: int) -> None:
        """Drop the oldest tokens behind the first `anchor`: 75 % of the context stay, keys get their new rotation."""
        n_ctx = self._engine.program.n_ctx
        kept = max(int(n_ctx * KEPT_SHARE), 1)
        anchor = min(anchor, kept - 1)
        dropped = len(request.tokens) - kept
        old = request.pages
        own, new = list[int](), list(old)  # indices of shared pages, which will be written on from now on
        for i in range(anchor // PAGE, len(old)):
            while self.pool.is_shared(old[i]) and not self.pool.n_free and self.prefixes.drop_oldest():
                pass  # until a page is free, or this one is the sequence's alone
            if self.pool.is_shared(old[i]):
                own.append(i)
                new[i] = self.pool.take()
        if own and own[0] * PAGE < anchor:
            self._engine.copy_page(old[own[0]], new[own[0]])
        self._engine.shift(old, new, anchor, dropped, request.computed)
        for i in own:
            self.pool.give(old[i])
        request.pages = new
        self._engine.pages[request.slot, : len(new)] = new
        request.drop(anchor, dropped)

    @contextmanager
    def borrowed(self, n_pages: int) -> Iterator[list[int]]:
        """Pages for as long as the block runs; kept prefixes give way to them.

        Raises:
            BusyError: active sequences have too many of them.
        """
        if not self._make_room(n_pages):
            raise BusyError("the memory for keys and values is used up", hint="wait for other requests to finish")
        pages = [self.pool.take() for _ in range(n_pages)]
        try:
            yield pages
        finally:
            for page in pages:
                self.pool.give(page)

    def _begin(self, request: Request, n_pages: int, pages: Sequence[int], common: int) -> bool:
        held = pages[: pages_of(common)]
        for page in held:
            self.pool.share(page)
        shared = held[: common // PAGE]
        if not self._make_room(n_pages - len(shared)):
            for page in held:
                self.pool.give(page)
            return False
        request.pages = [*shared, *(self.pool.take() for _ in range(n_pages - len(shared)))]
        for page in held[len(shared) :]:  # the page in which the common part ends is written on: a copy
            self._engine.copy_page(page, request.pages[len(shared)])
            self.pool.give(page)
        self._promised += n_pages
        request.slot = self._free_slots.pop()
        self._engine.pages[request.slot, :n_pages] = request.pages
        request.computed = request.generation.cached_tokens = common
        return True

    def _best_start(self, request: Request, active: Sequence[Request]) -> tuple[list[int], int]:
        pages, common = self.prefixes.longest(request.tokens, request.engine)
        for other in active:
            if not other.dropped and other.engine is request.engine:
                n = common_length(other.tokens[: other.computed], request.tokens)
                if n > common:
                    pages, common = other.pages, n
        return pages, common

    def _make_room(self, n: int) -> bool:
        """Let go of kept prefixes until n pages are free; False, and all are kept, when that would not be enough."""
        if self.pool.n_free < n and self.pool.n_free + self.prefixes.count_idle() < n:
            return False
        while self.pool.n_free < n and self.prefixes.drop_oldest():
            pass
        return self.pool.n_free >= n


def common_length(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens both begin with."""
    n = min(len(a), len(b))
    start = 0
    while start < n and a[start : start + PAGE] == b[start : start + PAGE]:
        start += PAGE
    for i in range(start, min(start + PAGE, n)):
        if a[i] != b[i]:
            return i
    return n
