"""The scheduler: one thread that owns the engine and forms each step's batch from all requests.

A step takes the next row of every sequence that is answering (with speculation a few rows), and as many rows of new
prompts as fit; requests join and leave between steps. An answer has the bits it would have alone, because the
engine's rows do not see each other.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

from modelc.errors import BusyError, ModelcError
from modelc.kernels.env import PAGE
from modelc.program import Program
from modelc.runtime.engine import Engine, Rows
from modelc.runtime.generation import Request
from modelc.runtime.kv_memory import KvMemory, common_length
from modelc.runtime.prompt_share import PromptShare

Result = TypeVar("Result")
Job = Callable[[Engine, KvMemory], Result]

ROWS_BESIDE_PROMPTS = 64  # while other prompts wait: a short one soon has its turn
ROWS_ALONE = 256  # while a prompt is alone, by and by: more gains little, and whoever comes waits for the step's end
OLDEST_EVERY = 4  # of so many steps one serves the oldest prompt first, the others the shortest


@dataclass(slots=True)
class Counters:
    """What the scheduler did so far, for metrics.

    Attributes:
        steps: batches run.
        rows: rows in them.
        waiting: requests in the queue now.
        active: requests in work now.
        prompt_tokens: of all requests admitted.
        cached_tokens: those whose keys and values were there already.
        prefix_hits: requests that had such tokens.
        proposed: tokens proposed by speculation.
        accepted: those that were right.
        free_pages: pages that nobody holds now.
        pages: pages in all.
        kept_prefixes: sequences kept for later prompts now.
    """

    steps: int = 0
    rows: int = 0
    waiting: int = 0
    active: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    prefix_hits: int = 0
    proposed: int = 0
    accepted: int = 0
    free_pages: int = 0
    pages: int = 0
    kept_prefixes: int = 0


class Scheduler:
    """Runs requests until closed.

    Attributes:
        counters: what it did.
        engine: runs the requests that come now.

    Args:
        engine: owned from now on.
        n_pages: pages of keys and values that the engine has.
        anchor: None: an answer ends where the context does; else the oldest tokens behind the first `anchor` are
            dropped.
    """

    def __init__(self, engine: Engine, n_pages: int, anchor: int | None = None) -> None:
        self.counters = Counters(pages=n_pages, free_pages=n_pages)
        self.engine = engine
        self._first = engine
        self._retired: list[Engine] = []  # which may have requests still
        self._memory = KvMemory(engine, n_pages, shifts=anchor is not None)
        self._anchor = anchor
        self._waiting: deque[Request] = deque()
        self._active: list[Request] = []
        self._jobs: deque[tuple[Job[Any], Future[Any]]] = deque()
        self._condition = threading.Condition()
        self._pin = threading.RLock()
        self._closed = False
        self._share = PromptShare()
        self._turn = 0
        self._thread = threading.Thread(target=self._serve, name="modelc-scheduler", daemon=True)
        self._thread.start()

    def submit(self, request: Request) -> None:
        """Put a request in the queue; its sink is called from the scheduler's thread."""
        with self._condition:
            self._check_open()
            request.engine = self.engine
            self._waiting.append(request)
            self._condition.notify()

    def call(self, job: Job[Result]) -> Result:
        """Run `job` between two steps, in the scheduler's thread; returns or raises what it does."""
        future: Future[Result] = Future()
        with self._condition:
            self._check_open()
            self._jobs.append((job, future))
            self._condition.notify()
        return future.result()

    def use(self, engine: Engine) -> None:
        """Run the requests that come from now on with `engine`, owned from now on; it works on the first one's memory.

        The one before, unless it is the first, is closed when the last of its requests has ended.
        """
        with self._pin, self._condition:
            self._check_open()
            if self.engine is not self._first:
                self._retired.append(self.engine)
            self.engine = engine
            self._condition.notify()

    def pinned(self) -> AbstractContextManager[object]:
        """Requests that one thread submits in this context run with the same engine."""
        return self._pin

    def close(self) -> None:
        """Cancel what is left, end the thread, and close the engines."""
        with self._condition:
            if self._closed:
                return
            self._closed = True
            self._condition.notify()
        self._thread.join()
        for engine in dict.fromkeys([self._first, self.engine, *self._retired]):
            engine.close()

    # ------------------------------------------------------------------------------------------------- the loop

    def _check_open(self) -> None:
        if self._closed:
            raise BusyError("the model is closed", hint="load it again")

    def _serve(self) -> None:
        while True:
            with self._condition:
                while not (self._waiting or self._active or self._jobs or self._retired or self._closed):
                    self._condition.wait()
                if self._closed:
                    break
                jobs, self._jobs = self._jobs, deque()
            for job, future in jobs:
                _settle(future, job, self.engine, self._memory)
            try:
                self._drop_cancelled()
                self._admit()
                for engine in dict.fromkeys(request.engine for request in self._active):
                    if engine is not None:
                        self._step(engine, [request for request in self._active if request.engine is engine])
            except Exception as error:  # an error of ours must not leave requests waiting for ever
                for request in self._active[:]:
                    self._release(request, keep=False)
                    request.fail(ModelcError(f"internal error: {error!r}", hint="please report it"))
            self._close_retired()
            self._count()
        for request in [*self._active, *self._waiting]:
            request.end("cancelled")
        for _, future in self._jobs:
            future.set_exception(BusyError("the model was closed"))

    def _close_retired(self) -> None:
        with self._condition:
            needed = {request.engine for request in [*self._active, *self._waiting]}
            closing = [engine for engine in self._retired if engine not in needed]
            self._retired = [engine for engine in self._retired if engine in needed]
        for engine in closing:
            self._memory.prefixes.forget(engine)
            engine.close()

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
        with self._condition:
            candidates = list(self._waiting)
        for request in candidates:
            if not self._memory.has_slot:
                return
            if self._will_share(request):
                continue
            if not self._memory.reserve(request, self._active):
                return
            with self._condition:
                self._waiting.remove(request)
            self._active.append(request)
            request.generation.started_s = time.perf_counter()
            self.counters.prompt_tokens += request.generation.prompt_tokens
            self.counters.cached_tokens += request.generation.cached_tokens
            self.counters.prefix_hits += request.generation.cached_tokens > 0

    def _will_share(self, request: Request) -> bool:
        """Whether an active prompt that is still being computed will soon have a page more that this one needs too."""
        if request.sampling.prompt_logprobs:
            return False
        for other in self._active:
            prompt = other.generation.prompt_tokens
            if other.engine is request.engine and other.computed < prompt - 1 and not other.dropped:
                common = min(common_length(other.tokens[:prompt], request.tokens), prompt - 1)
                if common >= other.computed + PAGE:
                    return True
        return False

    def _release(self, request: Request, keep: bool) -> None:
        self._active.remove(request)
        self._memory.release(request, keep)

    def _count(self) -> None:
        counters = self.counters
        counters.waiting, counters.active = len(self._waiting), len(self._active)
        counters.free_pages, counters.kept_prefixes = self._memory.pool.n_free, len(self._memory.prefixes)

    # -------------------------------------------------------------------------------------------------- a step

    def _step(self, engine: Engine, active: list[Request]) -> None:
        batch, requests = self._form_batch(engine.program, active)
        began = time.perf_counter()
        logits = engine.run(batch)
        n_out = len(logits)
        self._note_share(engine, batch, time.perf_counter() - began)
        self.counters.steps += 1
        self.counters.rows += sum(len(rows.tokens) for rows in batch)
        limit = None if self._anchor is not None else engine.program.n_ctx
        row = 0
        for request, rows in zip(requests, batch, strict=True):
            if rows.outputs:
                found = engine.hidden(n_out) if request.wants_hidden else logits
                wanted = found[row : row + rows.outputs]
                row += rows.outputs
                try:
                    wanted = wanted[request.score(wanted, rows.position) :]
                    proposed = max(len(wanted) - 1, 0)
                    accepted = request.accept(wanted, rows.tokens, limit) if len(wanted) else 0
                except ModelcError as error:
                    self._release(request, keep=False)
                    request.fail(error)
                    continue
                request.computed += len(rows.tokens) - proposed + accepted
                self.counters.proposed += proposed
                self.counters.accepted += accepted
            else:
                request.computed += len(rows.tokens)
            if request.generation.finish_reason is not None:
                self._release(request, keep=True)
            elif self._anchor is not None and len(request.tokens) >= engine.program.n_ctx:
                self._memory.shift(request, self._anchor)

    def _form_batch(self, program: Program, active: list[Request]) -> tuple[list[Rows], list[Request]]:
        """The next rows of each sequence that is answering; the rest of the step for prompts."""
        answering = [r for r in active if len(r.tokens) - r.computed == 1]
        prompts = [r for r in active if len(r.tokens) - r.computed > 1]
        spare = min(program.max_rows, program.max_out) - len(answering)
        batch, requests = [], []
        for request in answering:
            room = min(program.n_ctx, len(request.pages) * PAGE) - len(request.tokens) - 1  # never past a shift
            proposal = request.propose(max(min(room, spare), 0))
            spare -= len(proposal)
            batch.append(Rows(request.slot, request.computed, [request.tokens[-1], *proposal], 1 + len(proposal)))
            requests.append(request)
        left = program.max_rows - sum(len(rows.tokens) for rows in batch)
        if answering:
            left = min(left, self._share.rows(program.max_rows - left))
        elif len(prompts) > 1:
            left = min(left, ROWS_BESIDE_PROMPTS)
        elif prompts and len(prompts[0].tokens) - prompts[0].computed > ROWS_ALONE:
            left = min(left, max(ROWS_BESIDE_PROMPTS, min(prompts[0].computed, ROWS_ALONE)))
        for request in self._by_turn(prompts):
            first = request.computed
            count = min(len(request.tokens) - first, left)
            if request.sampling.prompt_logprobs:
                count = min(count, spare)
            outputs = request.outputs(first, count)
            if count > 0 and outputs <= spare:
                batch.append(Rows(request.slot, first, request.tokens[first : first + count], outputs))
                requests.append(request)
                left -= count
                spare -= outputs
        return batch, requests

    def _note_share(self, engine: Engine, batch: list[Rows], seconds: float) -> None:
        answers = sum(len(rows.tokens) for rows in batch if rows.outputs == len(rows.tokens))
        prompts = sum(len(rows.tokens) for rows in batch) - answers
        if answers and prompts:
            self._share.note(answers, prompts, seconds, engine.costs.seconds(answers))

    def _by_turn(self, prompts: list[Request]) -> list[Request]:
        """The prompt with the least left goes first; every few steps the oldest does, so that none waits for ever."""
        self._turn += 1
        if self._turn % OLDEST_EVERY == 0:
            return prompts  # in the order of arrival
        return sorted(prompts, key=lambda r: len(r.tokens) - r.computed)


def _settle(future: Future[Any], job: Job[Any], engine: Engine, memory: KvMemory) -> None:
    try:
        future.set_result(job(engine, memory))
    except BaseException as error:
        future.set_exception(error)
