"""modelc's engine without the scheduler and the server around it: `python -m bench.workers.modelc`."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.accuracy import log_probs_at
from bench.bandwidth import read_bytes_per_second
from bench.prompt import prompt_ids
from bench.workers.protocol import serve
from modelc import runtime
from modelc.formats import open_model
from modelc.kernels.env import PAGE
from modelc.kernels.objects import ObjectCache
from modelc.models import lower
from modelc.program import Builder
from modelc.runtime.engine import Engine, Rows
from modelc.runtime.model import MAX_OUT, MAX_ROWS
from modelc.runtime.options import ACTIVATIONS
from modelc.version import version_line

N_SLOTS = 4  # one for prompts, the others for the lengths that are decoded at
PAGES_PER_SLOT = 2048 // PAGE
PREFILL_SLOT = 0


class Modelc:
    """One engine with int8 activations and keys and values in f16, as `modelc run` has it."""

    def __init__(self) -> None:
        self._engine: Engine | None = None
        self._slots: dict[int, int] = {}  # length of context -> slot

    def about(self) -> dict[str, Any]:
        """See `Worker`."""
        return {"version": version_line(), "detail": "activations int8, keys and values f16"}

    def load(self, model: str, threads: int) -> dict[str, Any]:
        """See `Worker`. Also returns `weights_bytes`, what one decoded token reads."""
        if self._engine is not None:
            self._engine.close()
        source = open_model(model)
        lowered = lower(source)
        builder = Builder(MAX_ROWS, MAX_OUT, threads, lowered.config.n_ctx, ACTIVATIONS["int8"], "f16")
        objects = ObjectCache()
        program = lowered.program(builder)
        self._engine = Engine(program, lowered.weights.base, N_SLOTS, N_SLOTS * PAGES_PER_SLOT, objects)
        for slot in range(N_SLOTS):
            first = slot * PAGES_PER_SLOT
            self._engine.pages[slot, :PAGES_PER_SLOT] = np.arange(first, first + PAGES_PER_SLOT)
        self._slots.clear()
        self._weights = lowered.weights  # keeps the file mapped
        self._threads = threads
        untied = "output.weight" in source.tensors  # then a token reads one row of the embedding only
        self._weights_bytes = sum(
            tensor.stored.nbytes
            for tensor in source.tensors.values()
            if len(tensor.shape) == 2 and not (untied and tensor.name == "token_embd.weight")
        )
        return {"weights_bytes": self._weights_bytes}

    def prefill(self, n: int, seed: int) -> dict[str, Any]:
        """See `Worker`."""
        ids = prompt_ids(n, seed)
        start = time.perf_counter()
        self._next(PREFILL_SLOT, 0, ids)
        return {"seconds": time.perf_counter() - start}

    def decode(self, context: int, n: int) -> dict[str, Any]:
        """See `Worker`."""
        ids = prompt_ids(context + 1, seed=0)
        slot = self._slots.get(context)
        if slot is None:
            slot = self._slots[context] = len(self._slots) + 1
            self._next(slot, 0, ids[:context])
        token = ids[context]
        start = time.perf_counter()
        for i in range(n):
            token = self._next(slot, context + i, [token])
        return {"seconds": time.perf_counter() - start}

    def stream(self) -> dict[str, Any]:
        """Read the bytes of the weights, where they are, and do nothing with them: `bytes_per_second`."""
        return {"bytes_per_second": read_bytes_per_second(self._weights.base, self._weights_bytes, self._threads)}

    def log_probs(self, model: str, activations: str, ids: list[int], wanted: list[list[int]]) -> dict[str, Any]:
        """After each of `ids`, the log-probabilities of the tokens wanted there: `rows`."""
        with runtime.load(model, threads=1, activations=activations) as loaded:
            return {"rows": log_probs_at(loaded.logits(ids), wanted).tolist()}

    def _next(self, slot: int, position: int, ids: Sequence[int]) -> int:
        """Process `ids` from `position` on and return the likeliest next token."""
        assert self._engine is not None, "`load` comes first"
        for first in range(0, len(ids), MAX_ROWS):
            part = ids[first : first + MAX_ROWS]
            last = first + len(part) == len(ids)
            logits = self._engine.run([Rows(slot, position + first, part, int(last))])
        return int(np.argmax(logits[0]))


if __name__ == "__main__":
    engine = Modelc()
    serve(engine, stream=engine.stream, log_probs=engine.log_probs)
