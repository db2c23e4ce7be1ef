"""The scheduler: one thread that owns the engine and forms each step's batch from all requests.

A step takes one row from every sequence that is answering, and as many rows of waiting prompts as fit, shared fairly;
requests join and leave between steps. An answer has the bits it would have alone, because the engine's rows do not
see each other.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from modelc.errors import BusyError, ModelcError
from modelc.kernels.env import PAGE
from modelc.runtime.engine import Engine, Rows
from modelc.runtime.generation import Request
from modelc.runtime.pages import PagePool
from modelc.runtime.prefixes import PrefixCache

Result = TypeVar("Result")

SHARED_PROMPT_ROWS = 128  # rows of prompts in a step while others wait: about as long as 20 tokens of one answer
OLDEST_EVERY = 4  # of so many steps one serves the oldest prompt first, the others the shortest


class Scheduler:
    """Runs requests until closed.

    Args:
        engine: owned from now on.
        n_pages: pages of keys and values that the engine has.
    """

    def __init__(self, engine: Engine, n_pages: int) -> None:
        self._engine = engine
        self._pool = PagePool(n_pages)
        self._prefixes = PrefixCache(self._pool)
        self._waiting: deque[Request] = deque()
        self._active: list[Request] = []
        self._free_slots = list(range(engine.n_slots - 2, -1, -1))  # the last one is for `call`
        self._jobs: deque[tuple[Callable[[Engine, PagePool], Any], Future[Any]]] = deque()
        self._condition = threading.Condition()
        self._closed = False
        self._turn = 0
        self._thread = threading.Thread(target=self._serve, name="modelc-scheduler", daemon=True)
        self._thread.start()

    def submit(self, request: Request) -> None:
        """Put a request in the queue; its sink is called from the scheduler's thread."""
        with self._condition:
            self._check_open()
            self._waiting.append(request)
            self._condition.notify()

    def call(self, job: Callable[[Engine, PagePool], Result]) -> Result:
        """Run `job` between two steps, in the scheduler's thread; returns or raises what it does."""
        future: Future[Result] = Future()
        with self._condition:
            self._check_open()
            self._jobs.append((job, future))
            self._condition.notify()
        return future.result()

    def close(self) -> None:
        """Cancel what is left, end the thread, and close the engine."""
        with self._condition:
            self._closed = True
            self._condition.notify()
        self._thread.join()
        self._engine.close()

    # ------------------------------------------------------------------------------------------------- the loop

    def _check_open(self) -> None:
        if self._closed:
            raise BusyError("the model is closed", hint="load it again")

    def _serve(self) -> None:
        while True:
            with self._condition:
                while not (self._waiting or self._active or self._jobs or self._closed):
                    self._condition.wait()
                if self._closed:
                    break
                jobs, self._jobs = self._jobs, deque()
            for job, future in jobs:
                _settle(future, job, self._engine, self._pool)
            try:
                self._drop_cancelled()
                self._admit()
                if self._active:
                    self._step()
            except Exception as error:  # an error of ours must not leave requests waiting for ever
                for request in self._active[:]:
                    self._release(request, keep=False)
                    request.fail(ModelcError(f"internal error: {error!r}", hint="please report it"))
        for request in [*self._active, *self._waiting]:
            request.end("cancelled")
        for _, future in self._jobs:
            future.cancel()

    def _drop_cancelled(self) -> None:
        for request in [r for r in self._active if r.generation.cancelled]:
            self._release(request, keep=True)
            request.end("cancelled")
        with self._condition:
            gone = [r for r in self._waiting if r.generation.cancelled]
            for request in gone:
                self._waiting.remove(request)
        for request in gone:
            request.end("cancelled")

    def _admit(self) -> None:
        """Give slots and pages to requests in the order of their arrival, as far as they go."""
        while self._free_slots:
            with self._condition:
                if not self._waiting:
                    return
                request = self._waiting[0]
            if not self._reserve(request):
                return
            with self._condition:
                self._waiting.remove(request)
            self._active.append(request)

    def _reserve(self, request: Request) -> bool:
        """Pages for the whole of prompt and answer, so that a sequence that began can always end."""
        n_pages = _pages(min(request.last_position, self._engine.program.n_ctx))
        entry, common = self._prefixes.longest(request.tokens)
        common = min(common, len(request.tokens) - 1)  # the last token is computed anew, for its logits
        held = entry.pages[: _pages(common)] if entry else ()
        for page in held:
            self._pool.share(page)
        shared = held[: common // PAGE]
        while self._pool.n_free < n_pages - len(shared):
            if not self._prefixes.drop_oldest():
                for page in held:
                    self._pool.give(page)
                return False
        request.pages = [*shared, *(self._pool.take() for _ in range(n_pages - len(shared)))]
        for page in held[len(shared) :]:  # the page in which the common part ends is written on: a copy
            self._engine.copy_page(page, request.pages[len(shared)])
            self._pool.give(page)
        request.slot = self._free_slots.pop()
        self._engine.pages[request.slot, :n_pages] = request.pages
        request.computed = request.generation.cached_tokens = common
        return True

    def _release(self, request: Request, keep: bool) -> None:
        self._active.remove(request)
        self._free_slots.append(request.slot)
        request.slot = -1
        if keep and request.computed:
            self._prefixes.keep(request.tokens[: request.computed], request.pages)
        else:
            for page in request.pages:
                self._pool.give(page)

    # -------------------------------------------------------------------------------------------------- a step

    def _step(self) -> None:
        batch, requests = self._form_batch()
        logits = self._engine.run(batch)
        row = 0
        for request, rows in zip(requests, batch, strict=True):
            request.computed += len(rows.tokens)
            if rows.outputs:
                request.accept(logits[row], self._engine.program.n_ctx)
                row += 1
            if request.generation.finish_reason is not None:
                self._release(request, keep=True)

    def _form_batch(self) -> tuple[list[Rows], list[Request]]:
        """One row for each sequence that is answering; the rest of the step for prompts."""
        answering = [r for r in self._active if len(r.tokens) - r.computed == 1]
        prompts = [r for r in self._active if len(r.tokens) - r.computed > 1]
        counts = [(request, 1) for request in answering]
        left = self._engine.program.max_rows - len(answering)
        if answering or len(prompts) > 1:
            left = min(left, SHARED_PROMPT_ROWS)
        for request in self._by_turn(prompts):
            count = min(len(request.tokens) - request.computed, left)
            if count > 0:
                counts.append((request, count))
                left -= count
        batch = []
        for request, count in counts:
            first = request.computed
            ends = first + count == len(request.tokens)
            batch.append(Rows(request.slot, first, request.tokens[first : first + count], int(ends)))
        return batch, [request for request, _ in counts]

    def _by_turn(self, prompts: list[Request]) -> list[Request]:
        """The prompt with the least left goes first; every few steps the oldest does, so that none waits for ever."""
        self._turn += 1
        if self._turn % OLDEST_EVERY == 0:
            return prompts  # in the order of arrival
        return sorted(prompts, key=lambda r: len(r.tokens) - r.computed)


def _pages(positions: int) -> int:
    return (positions + PAGE - 1) // PAGE


def _settle(future: Future[Any], job: Callable[[Engine, PagePool], Any], engine: Engine, pool: PagePool) -> None:
    try:
        future.set_result(job(engine, pool))
    except BaseException as error:
        future.set_exception(error)
