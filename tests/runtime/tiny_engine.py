"""An engine for a small model, and its logits for whole sequences."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from modelc.ir import Model
from modelc.models import lower
from modelc.program import Builder
from modelc.runtime.engine import Engine, Rows
from tests.kernels.opcode_runner import objects

N_SLOTS = 8
PAGES_PER_SLOT = 4  # 256 positions
MAX_ROWS = 160


@contextmanager
def engine_of(
    model: Model,
    n_threads: int = 1,
    activation: str = "a8",
    kv: str = "f32",
    max_rows: int = MAX_ROWS,
    max_out: int = MAX_ROWS,
    kv_hot_window: int = 64,
    pages_per_slot: int = PAGES_PER_SLOT,
) -> Iterator[Engine]:
    """An engine with pages for N_SLOTS sequences, of 256 positions or of as many pages, in no particular order."""
    lowered = lower(model)
    program = lowered.program(Builder(max_rows, max_out, n_threads, pages_per_slot * 64, activation, kv, kv_hot_window))
    n_pages = N_SLOTS * pages_per_slot
    engine = Engine(program, lowered.weights.base, N_SLOTS, n_pages, objects())
    try:
        engine.pages[:] = np.random.default_rng(3).permutation(n_pages).reshape(N_SLOTS, pages_per_slot)
        yield engine
    finally:
        engine.close()
        del lowered  # the weights stay in memory as long as the engine


def logits_of(
    engine: Engine, tokens: Sequence[int], steps: Sequence[int] | None = None, slot: int = 0
) -> npt.NDArray[np.float32]:
    """Logits after each token, computed in steps of so many rows (one step when None)."""
    out, at = [], 0
    for count in steps or [len(tokens)]:
        out.append(engine.run([Rows(slot, at, tokens[at : at + count], count)]).copy())
        at += count
    assert at == len(tokens)
    return np.concatenate(out)
