"""The same logits, bit for bit, however a sequence is cut into batches and whoever shares them."""

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

from modelc.runtime.engine import Engine, Rows
from modelc.runtime.step_costs import TRIES
from tests.models.tiny_llama import tiny_llama, tiny_llama_of
from tests.runtime.tiny_engine import MAX_ROWS, N_SLOTS, engine_of, logits_of

F32 = npt.NDArray[np.float32]

SEQUENCES = [[int(t) for t in np.random.default_rng(s).integers(0, 50, 140)] for s in range(N_SLOTS)]
TOKENS = SEQUENCES[0]
# (weights, activations, keys and values): float weights; one scale; two scales; activations in int16; types of keys and
# values whose sums change their form on the way
MODELS = {
    "f32": (tiny_llama("f32", dim=50, ffn_dim=71), "a8", "f32"),
    "q8_0": (tiny_llama_of("q8_0"), "a8", "f16"),
    "q6_k": (tiny_llama_of("q6_k"), "a16", "f32"),
    "int8": (tiny_llama_of("q8_0"), "a8", "int8"),
    "mixed": (tiny_llama_of("q8_0"), "a8", "mixed"),
}


@pytest.fixture(scope="module", params=MODELS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def engine(name: str) -> Iterator[Engine]:
    model, activation, kv = MODELS[name]
    with engine_of(model, 2, activation, kv) as engine:
        yield engine


@pytest.fixture(scope="module")
def expected(name: str) -> list[F32]:
    """Logits of each sequence alone, in one thread, token by token."""
    model, activation, kv = MODELS[name]
    with engine_of(model, 1, activation, kv) as engine:
        return [logits_of(engine, tokens, [1] * len(tokens)) for tokens in SEQUENCES]


@pytest.mark.parametrize("n_threads", [1, 2, 3, 7])
def test_the_number_of_threads_changes_nothing(name: str, n_threads: int, expected: list[F32]) -> None:
    model, activation, kv = MODELS[name]
    with engine_of(model, n_threads, activation, kv) as engine:
        assert np.array_equal(logits_of(engine, TOKENS), expected[0])
        assert np.array_equal(logits_of(engine, TOKENS, [1] * 20 + [120]), expected[0])


@pytest.mark.parametrize("step", range(1, 10))
def test_prompts_may_be_cut_into_equal_steps(engine: Engine, step: int, expected: list[F32]) -> None:
    steps = [step] * (140 // step) + [140 % step] * (140 % step > 0)
    assert np.array_equal(logits_of(engine, TOKENS, steps), expected[0])


@pytest.mark.parametrize("seed", range(6))
def test_prompts_may_be_cut_anywhere(engine: Engine, seed: int, expected: list[F32]) -> None:
    cuts = np.sort(np.random.default_rng(seed).choice(np.arange(1, 140), 7, replace=False))
    steps = np.diff([0, *cuts, 140]).tolist()
    assert np.array_equal(logits_of(engine, TOKENS, steps, slot=seed), expected[0])


@pytest.mark.parametrize("seed", range(4))
def test_a_sequence_does_not_see_who_shares_its_batches(engine: Engine, seed: int, expected: list[F32]) -> None:
    rng = np.random.default_rng(seed)
    done = [0] * N_SLOTS
    while min(done) < 140:
        batch, left = [], MAX_ROWS
        for slot in rng.permutation(N_SLOTS).tolist():
            count = min(int(rng.choice([0, 1, 1, 2, 7, 8, 9, 33])), 140 - done[slot], left)
            if count:
                batch.append(Rows(slot, done[slot], SEQUENCES[slot][done[slot] : done[slot] + count], count))
                left -= count
        if not batch:
            continue
        at = 0
        logits = engine.run(batch)
        for rows in batch:
            wanted = expected[rows.slot][rows.position : rows.position + rows.outputs]
            assert np.array_equal(logits[at : at + rows.outputs], wanted)
            at += rows.outputs
            done[rows.slot] += len(rows.tokens)


def test_a_full_batch_of_single_rows(engine: Engine, expected: list[F32]) -> None:
    for slot, tokens in enumerate(SEQUENCES):
        engine.run([Rows(slot, 0, tokens[: 60 + slot], 0)])
    batch = [Rows(slot, 60 + slot, tokens[60 + slot : 61 + slot], 1) for slot, tokens in enumerate(SEQUENCES)]
    logits = engine.run(batch)
    for slot in range(N_SLOTS):
        assert np.array_equal(logits[slot], expected[slot][60 + slot])


@pytest.mark.parametrize("outputs", [0, 1, 3, 40])
def test_logits_are_those_of_the_last_rows(engine: Engine, outputs: int, expected: list[F32]) -> None:
    logits = engine.run([Rows(2, 0, SEQUENCES[2][:40], outputs), Rows(5, 0, SEQUENCES[5][:1], min(outputs, 1))])
    assert logits.shape == (outputs + min(outputs, 1), 50)
    assert logits.dtype == np.float32
    assert np.array_equal(logits[:outputs], expected[2][40 - outputs : 40])
    if outputs:
        assert np.array_equal(logits[outputs], expected[5][0])


def test_one_row_without_outputs_still_writes_its_keys_and_values(engine: Engine, expected: list[F32]) -> None:
    for i in range(20):
        assert engine.run([Rows(1, i, SEQUENCES[1][i : i + 1], 0)]).shape == (0, 50)
    assert np.array_equal(engine.run([Rows(1, 20, SEQUENCES[1][20:21], 1)])[0], expected[1][20])


def test_a_sequence_may_be_taken_back_and_written_again(engine: Engine, expected: list[F32]) -> None:
    engine.run([Rows(0, 0, SEQUENCES[3][:90], 0)])
    assert np.array_equal(logits_of(engine, TOKENS[:70]), expected[0][:70])
    assert np.array_equal(engine.run([Rows(0, 70, TOKENS[70:], 70)]), expected[0][70:])


def test_pages_may_be_shared_and_copied(engine: Engine, expected: list[F32]) -> None:
    kept = engine.pages.copy()
    try:
        engine.run([Rows(0, 0, TOKENS[:100], 0)])
        engine.pages[1, 0] = engine.pages[0, 0]  # a whole page, shared
        engine.copy_page(engine.pages[0, 1], engine.pages[1, 1])  # a begun one, copied
        assert np.array_equal(engine.run([Rows(1, 100, TOKENS[100:], 40)]), expected[0][100:])
        engine.run([Rows(1, 90, SEQUENCES[4][:20], 0)])  # what the copy becomes is not seen by the other
        assert np.array_equal(engine.run([Rows(0, 100, TOKENS[100:], 40)]), expected[0][100:])
    finally:
        engine.pages[:] = kept


@pytest.mark.parametrize("new", [[0, 1], [0, 2], [3, 2]], ids=["in place", "partly", "copied"])
def test_a_shifted_sequence_goes_on_as_if_what_was_dropped_had_never_been(new: list[int]) -> None:
    tokens = TOKENS[:4] + TOKENS[34:]
    # With one layer, keys and values do not depend on the tokens before: only rounding tells the two ways apart.
    with engine_of(tiny_llama(n_layers=1), 2) as engine:
        expected = logits_of(engine, tokens[:90])[70:]
        engine.run([Rows(1, 0, TOKENS[:100], 0)])
        mine = engine.pages[1].tolist()
        pages = [mine[i] for i in new]
        if pages[0] != mine[0]:
            engine.copy_page(mine[0], pages[0])
        engine.shift(mine, pages, 4, 30, 100)
        engine.pages[1, :2] = pages
        assert np.abs(engine.run([Rows(1, 70, tokens[70:90], 20)]) - expected).max() < 1e-4


def test_only_steps_whose_rows_all_have_logits_tell_what_answers_cost() -> None:
    with engine_of(MODELS["f32"][0]) as engine:
        for _ in range(TRIES):
            engine.run([Rows(0, 0, TOKENS[:2], 1), Rows(1, 0, TOKENS[:1], 1)])
        assert engine.costs.ratio(1) == math.inf
        for _ in range(TRIES):
            engine.run([Rows(0, 2, TOKENS[2:3], 1), Rows(1, 1, TOKENS[1:2], 1)])
        assert engine.costs.ratio(1) == 1.0


def test_what_is_asked_of_the_keys_and_values_type_is_used() -> None:
    model = MODELS["f32"][0]
    logits = {}
    for kv in ("f32", "f16"):
        with engine_of(model, kv=kv) as engine:
            logits[kv] = logits_of(engine, TOKENS)
            assert np.array_equal(logits_of(engine, TOKENS, [7] * 20), logits[kv])
    assert not np.array_equal(logits["f16"], logits["f32"])
    assert np.abs(logits["f16"] - logits["f32"]).max() < 0.02


def test_logits_are_a_view_that_lasts_until_the_next_batch(engine: Engine) -> None:
    first = engine.run([Rows(0, 0, TOKENS[:5], 1)])
    kept = first.copy()
    assert np.array_equal(engine.run([Rows(0, 0, TOKENS[:5], 1)]), kept)
    assert first.base is not None


def test_batches_of_no_row_or_too_many_are_refused(engine: Engine) -> None:
    with pytest.raises(ValueError, match="a batch has 1 to"):
        engine.run([])
    with pytest.raises(ValueError, match="a batch has 1 to"):
        engine.run([Rows(0, 0, TOKENS + TOKENS, 1)])


def test_cycles_are_counted_from_the_start_of_the_profile(name: str) -> None:
    model, activation, kv = MODELS[name]
    with engine_of(model, 1, activation, kv) as engine:
        engine.run([Rows(0, 0, TOKENS[:3], 1)])
        engine.start_profile()
        engine.run([Rows(0, 3, TOKENS[3:4], 1)])
        engine.run([Rows(0, 4, TOKENS[4:9], 1)])
        cycles, steps, seconds = engine.profile()
    assert cycles.shape == (len(engine.program.table),)
    assert (cycles > 0).all()
    assert steps == 2
    assert 0 < seconds < 60
