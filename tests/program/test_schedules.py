"""A real program, its threads simulated one instruction at a time in hostile orders: barriers alone keep the bits."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from modelc.kernels import env
from modelc.kernels.objects import python_function
from modelc.runtime.engine import Engine, Rows
from tests.models.tiny_llama import tiny_llama, tiny_llama_of
from tests.runtime.tiny_engine import engine_of

Order = Callable[[int, int], Iterator[tuple[int, int]]]  # (threads, instructions) -> (thread, instruction)


def ascending(n_threads: int, n: int) -> Iterator[tuple[int, int]]:
    """One thread runs as far ahead as it may, then the next."""
    return ((tid, i) for tid in range(n_threads) for i in range(n))


def descending(n_threads: int, n: int) -> Iterator[tuple[int, int]]:
    return ((tid, i) for tid in reversed(range(n_threads)) for i in range(n))


def shuffled(seed: int) -> Order:
    def order(n_threads: int, n: int) -> Iterator[tuple[int, int]]:
        at = [0] * n_threads
        for tid in np.random.default_rng(seed).permutation(np.repeat(range(n_threads), n)):
            yield int(tid), at[tid]
            at[tid] += 1

    return order


def run_by(engine: Engine, order: Order, monkeypatch: pytest.MonkeyPatch, *, barriers: bool = True) -> None:
    """Make the engine run its batches in this thread, instructions between two barriers in the given order."""
    table, n_threads = engine._table, engine.program.n_threads
    calls = {address: python_function(int(address), 4, 0) for address in table[:, env.I_ADDRESS]}

    def run(rows: int) -> float:
        engine._control[env.FIRST_COUNTER :] = 0
        mask = 1 if rows == 1 else 2
        starts = [i for i in range(len(table)) if i == 0 or (barriers and table[i, env.I_BARRIER] & mask)]
        for start, stop in zip(starts, [*starts[1:], len(table)], strict=True):
            for tid, i in order(n_threads, stop - start):
                row = table[start + i]
                calls[row[env.I_ADDRESS]](row.ctypes.data, engine._env.ctypes.data, tid, n_threads)
        return 0.0

    monkeypatch.setattr(engine._team, "run", run)


def story(engine: Engine) -> list[np.ndarray]:
    """Logits of a prompt, single steps, and mixed batches."""
    tokens = [int(t) for t in np.random.default_rng(1).integers(0, 50, 80)]
    batches = [
        [Rows(0, 0, tokens[:66], 3)],
        [Rows(0, 66, tokens[66:67], 1)],
        [Rows(0, 67, tokens[67:68], 1), Rows(1, 0, tokens[10:23], 2), Rows(2, 0, tokens[5:6], 1)],
        [Rows(1, 13, tokens[:1], 1), Rows(2, 1, tokens[:2], 0), Rows(0, 68, tokens[:9], 1)],
        [Rows(2, 3, tokens[3:4], 1)],
    ]
    return [engine.run(batch).copy() for batch in batches]


MODELS = {"f32": tiny_llama("f32", dim=50, ffn_dim=71), "q8_0": tiny_llama_of("q8_0"), "q4_k": tiny_llama_of("q4_k")}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n_threads", [2, 3, 5])
def test_in_every_order_that_barriers_allow_the_bits_are_the_same(
    name: str, n_threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine_of(MODELS[name]) as engine:
        expected = story(engine)
    for order in (ascending, descending, shuffled(1), shuffled(2)):
        with engine_of(MODELS[name], n_threads) as engine:
            run_by(engine, order, monkeypatch)
            for logits, wanted in zip(story(engine), expected, strict=True):
                assert np.array_equal(logits, wanted)


def test_without_barriers_a_hostile_order_changes_the_logits(monkeypatch: pytest.MonkeyPatch) -> None:
    with engine_of(MODELS["q8_0"]) as engine:
        expected = story(engine)
    with engine_of(MODELS["q8_0"], 3) as engine:
        run_by(engine, descending, monkeypatch, barriers=False)
        with np.errstate(all="ignore"):
            assert not any(np.array_equal(a, b) for a, b in zip(story(engine), expected, strict=True))
