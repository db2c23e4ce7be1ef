"""A whole small model that answers in bytes, and answers that can be watched and held."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from modelc.runtime import Chunk, LanguageModel, Sampling
from modelc.runtime.engine import Engine
from modelc.runtime.kv_memory import KvMemory
from modelc.runtime.options import Options
from tests.models.tiny_llama import tiny_llama

WAIT_S = 60


def model_of(n_ctx: int = 256, **options: Any) -> LanguageModel:
    """A model with random weights and a vocabulary of bytes; its context is `n_ctx` or, with a shift, `max_context`."""
    return LanguageModel(tiny_llama(vocab_size=256, n_ctx=n_ctx), Options(1, **options))


def tokens_of(seed: int, n: int) -> list[int]:
    """A random prompt."""
    return [int(t) for t in np.random.default_rng(seed).integers(0, 256, n)]


class Answer:
    """A request to a model, and what came of it.

    Args:
        model: who answers.
        prompt: its tokens.
        on_chunk: called in the scheduler's thread, after each chunk was noted; while it blocks, all stand still.
        sampling: fields of `Sampling`.
    """

    def __init__(
        self,
        model: LanguageModel,
        prompt: Sequence[int],
        on_chunk: Callable[[Chunk], object] = lambda chunk: None,
        **sampling: Any,
    ) -> None:
        self.chunks: list[Chunk] = []
        self._ended = threading.Event()

        def take(chunk: Chunk) -> None:
            self.chunks.append(chunk)
            if chunk.finish_reason is not None:
                self._ended.set()
            on_chunk(chunk)

        self.generation = model.submit(prompt, Sampling(**sampling), take)

    def wait(self) -> Answer:
        """Until it has ended."""
        assert self._ended.wait(WAIT_S), "no end in sight"
        return self

    @property
    def tokens(self) -> list[int]:
        """Those so far."""
        return [token for chunk in self.chunks for token in chunk.token_ids]

    @property
    def reason(self) -> str | None:
        """Why it ended."""
        return self.chunks[-1].finish_reason if self.chunks else None


class Gate:
    """An `on_chunk` that stops the scheduler at every chunk until `step` lets it go on to the next one."""

    def __init__(self) -> None:
        self._reached, self._go = threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self, chunk: Chunk) -> None:
        self._reached.release()
        assert self._go.acquire(timeout=WAIT_S)

    def wait(self) -> None:
        """Until the scheduler stands at a chunk."""
        assert self._reached.acquire(timeout=WAIT_S)

    def step(self) -> None:
        """Let it go on to the next chunk."""
        self._go.release()
        self.wait()

    def open(self) -> None:
        """Let it go on for good."""
        self._go.release(1 << 20)


@contextmanager
def paused(model: LanguageModel) -> Iterator[None]:
    """The scheduler stands still while the block runs: what is submitted there arrives at once."""
    entered, go = threading.Event(), threading.Event()

    def stand(engine: Engine, memory: KvMemory) -> None:
        entered.set()
        assert go.wait(WAIT_S)

    thread = threading.Thread(target=model._scheduler.call, args=(stand,))
    thread.start()
    try:
        assert entered.wait(WAIT_S)
        yield
    finally:
        go.set()
        thread.join()


def audit(model: LanguageModel) -> None:
    """Every page is held exactly by the active sequences and kept prefixes that have it; the others are free."""
    scheduler = model._scheduler

    def check(engine: Engine, memory: KvMemory) -> None:
        held = Counter(page for request in scheduler._active for page in request.pages)
        pool, nodes = memory.pool, list(memory.prefixes._roots.values())
        while nodes:
            node = nodes.pop()
            nodes += node.children.values()
            held.update([node.page] if node.parent is not None else [])
        assert [held[page] for page in range(pool.n_pages)] == pool._holders
        assert sorted(pool._free) == [page for page in range(pool.n_pages) if not held[page]]

    scheduler.call(check)
