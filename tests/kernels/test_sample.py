import itertools
from dataclasses import dataclass, field

import numpy as np
import pytest

from modelc.kernels import env
from modelc.kernels.jit import kernel
from modelc.kernels.objects import python_function
from modelc.kernels.pointers import f64_ptr, i64_ptr
from modelc.kernels.sample import uniform
from tests.kernels.float_math import F32, exp, sum_lanes
from tests.kernels.opcode_runner import objects, run, unwritten

f32 = np.float32


@dataclass(frozen=True)
class Ask:
    """What is asked of one draw."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 0.0
    min_p: float = 0.0
    repetition: float = 1.0
    presence: float = 0.0
    frequency: float = 0.0
    seen: tuple[int, ...] = ()
    counts: dict[int, int] = field(default_factory=dict)
    bias: dict[int, float] = field(default_factory=dict)
    seed: int = 0
    position: int = 0
    allowed: tuple[int, ...] | None = None
    typical_p: float = 0.0
    top_n_sigma: float = 0.0
    xtc: tuple[float, float] = (0.0, 0.1)  # probability, threshold
    mirostat: int = 0
    mu: float = 0.0
    tau: float = 0.0
    eta: float = 0.0


def draw(logits: F32, ask: Ask) -> int:
    """The token that the compiled function chooses."""
    return draw_and_learn(logits, ask)[0]


def draw_and_learn(logits: F32, ask: Ask) -> tuple[int, float]:
    """The token that the compiled function chooses, and Mirostat's mu after it."""
    n = len(logits)
    work, candidates = unwritten((n + 63) // 64 * 64), np.zeros(n, np.int32)
    scores = unwritten((n + 63) // 64 * 64)
    mask = np.zeros((n + 31) // 32, np.int32)
    flags = np.zeros(32 * len(mask), np.uint8)
    flags[list(ask.allowed or ())] = 1
    mask[:] = np.packbits(flags, bitorder="little").view(np.int32)
    seen = np.array(ask.seen, np.int64)
    answer, counts = (np.array(list(part), np.int64) for part in (ask.counts, ask.counts.values()))
    tokens, values = np.array(list(ask.bias), np.int64), np.array(list(ask.bias.values()), np.float64)
    block = np.zeros(env.N_PARAMETERS, np.int64)
    for slot, array in (
        (env.LOGITS, logits),
        (env.WORK, work),
        (env.CANDIDATES, candidates),
        (env.SEEN, seen),
        (env.ANSWER, answer),
        (env.COUNTS, counts),
        (env.BIAS_TOKENS, tokens),
        (env.BIAS_VALUES, values),
        (env.SCORES, scores),
    ):
        block[slot] = array.ctypes.data
    block[env.MASK] = 0 if ask.allowed is None else mask.ctypes.data
    is_selective = ask.temperature > 0 and bool(ask.typical_p or ask.top_n_sigma or ask.xtc[0] or ask.mirostat)
    block[env.MIROSTAT] = ask.mirostat
    block[[env.N_VOCAB, env.N_SEEN, env.N_ANSWER, env.N_BIAS]] = n, len(seen), len(answer), len(tokens)
    block[[env.TOP_K, env.SEED, env.POSITION]] = ask.top_k, ask.seed, ask.position
    floats = block.view(np.float64)
    floats[[env.TEMPERATURE, env.TOP_P, env.MIN_P]] = ask.temperature, ask.top_p, ask.min_p
    floats[[env.REPETITION, env.PRESENCE, env.FREQUENCY]] = ask.repetition, ask.presence, ask.frequency
    floats[[env.TYPICAL_P, env.TOP_N_SIGMA]] = ask.typical_p, ask.top_n_sigma
    floats[[env.XTC_PROBABILITY, env.XTC_THRESHOLD]] = ask.xtc
    floats[[env.MIROSTAT_MU, env.MIROSTAT_TAU, env.MIROSTAT_ETA]] = ask.mu, ask.tau, ask.eta
    before = logits.copy()
    name = "select" if is_selective else "sample"
    (token,) = python_function(objects().addresses([name])[name], 1, 1)(block.ctypes.data)
    assert np.array_equal(logits, before, equal_nan=True), "the caller's logits are left as they are"
    return token, float(floats[env.MIROSTAT_MU])


def expected_draw(logits: F32, ask: Ask) -> int:
    """The same in plain NumPy: sort everything, then cut."""
    w = logits.copy()
    for token in ask.seen:
        w[token] = w[token] / f32(ask.repetition) if w[token] > 0 else w[token] * f32(ask.repetition)
    for token, count in ask.counts.items():
        w[token] = w[token] - f32(ask.presence) - f32(ask.frequency) * f32(count)
    for token, value in ask.bias.items():
        w[token] += f32(value)
    if ask.allowed is not None:
        w[np.isin(np.arange(len(w)), ask.allowed, invert=True)] = -np.inf
    if ask.temperature <= 0:
        return int(np.argmax(w))
    e = exp((w - w.max()) * f32(1 / ask.temperature))
    total = np.float64(sum_lanes(np.add.accumulate(np.pad(e, (0, -len(e) % 16)).reshape(-1, 16))[-1]))
    top_k = ask.top_k if ask.top_k < len(w) else 0
    top_p = ask.top_p if ask.top_p < 1 else 0.0
    order = np.arange(len(w))
    if top_k or top_p:
        order = np.lexsort((order, -e))
        if top_k:
            order = order[:top_k]
            total = np.cumsum(e[order].astype(np.float64))[-1]
        before = np.cumsum(e[order].astype(np.float64)) - e[order]
        cut = (e[order] < f32(ask.min_p)) | ((before > top_p * total) & (top_p > 0))
        cut[0] = False
        order = order[: np.argmax(cut)] if cut.any() else order
    else:
        order = order[e >= max(f32(ask.min_p), f32(1e-38))]
    running = np.cumsum(e[order].astype(np.float64))
    target = expected_uniform(ask.seed, ask.position) * running[-1]
    return int(order[min(np.searchsorted(running, target, side="right"), len(order) - 1)])


def expected_uniform(seed: int, position: int) -> float:
    mask = (1 << 64) - 1
    x = seed ^ (position * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) & mask
    for _ in range(2):
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & mask
        x = (x ^ x >> 27) * 0x94D049BB133111EB & mask
        x ^= x >> 31
    return (x >> 11) * 2.0**-53


def random_logits(n: int, seed: int) -> F32:
    return (np.random.default_rng(seed).standard_normal(n) * 4).astype(f32)


# --------------------------------------------------------------------------------------------------------- greedy


@pytest.mark.parametrize("n", [1, 15, 16, 17, 50, 1000])
def test_greedy_takes_the_largest_and_of_equals_the_first(n: int) -> None:
    logits = random_logits(n, n)
    assert draw(logits, Ask(temperature=0)) == np.argmax(logits)
    logits[[n // 2, n - 1]] = 100
    assert draw(logits, Ask(temperature=0)) == n // 2
    assert draw(np.full(n, -3, f32), Ask(temperature=0)) == 0


def test_greedy_ignores_what_truncates() -> None:
    logits = random_logits(100, 1)
    assert draw(logits, Ask(temperature=0, top_k=5, top_p=0.2, min_p=0.9, seed=7)) == np.argmax(logits)


def test_without_a_finite_largest_logit_there_is_no_token() -> None:
    for temperature in (0.0, 1.0):
        for value in (-np.inf, np.inf, np.nan):
            assert draw(np.full(20, value, f32), Ask(temperature=temperature)) == -1


# ------------------------------------------------------------------------------------------ against the reference


@pytest.mark.parametrize("n", [1, 16, 17, 50, 1000, 5000])
def test_draws_are_those_of_the_reference(n: int) -> None:
    logits = random_logits(n, n)
    logits[n // 3 : n // 3 + 3] = logits.max()  # ties at the top
    top_ks, top_ps = (0, 1, 5, 40, n - 1, n, n + 5), (0.0, 0.1, 0.7, 0.95, 0.9999999, 1.0)
    for k, p, min_p in itertools.product(top_ks, top_ps, (0.0, 0.05, 1.0)):
        for seed, temperature in ((1, 0.3), (2, 1.0), (3, 5.0)):
            ask = Ask(temperature, max(k, 0), p, min_p, seed=seed, position=k + 1)
            assert draw(logits, ask) == expected_draw(logits, ask), ask


def test_draws_with_penalties_and_bias_are_those_of_the_reference() -> None:
    logits = random_logits(300, 5)
    best = [int(i) for i in np.argsort(-logits)]
    for seed in range(50):
        for temperature in (0.0, 1.0):
            ask = Ask(
                temperature,
                repetition=1.3,
                presence=0.7,
                frequency=-0.4,
                seen=(*best[:5], 17),
                counts={best[0]: 3, best[7]: 1},
                bias={best[1]: -100.0, best[20]: 6.5},
                seed=seed,
            )
            assert draw(logits, ask) == expected_draw(logits, ask)


def test_a_flat_distribution_is_searched_to_its_end() -> None:
    logits = np.zeros(5000, f32)
    logits[0] = 12  # all others lie far below the first thresholds at which candidates are collected
    for seed in range(30):
        for ask in (Ask(top_k=3000, seed=seed), Ask(top_p=0.97, seed=seed)):
            assert draw(logits, ask) == expected_draw(logits, ask)


@pytest.mark.parametrize("n", [1, 31, 32, 33, 100, 5000])
def test_masked_draws_are_those_of_the_reference(n: int) -> None:
    logits = random_logits(n, n)
    rng = np.random.default_rng(n)
    for share in (0.0, 0.02, 0.5, 0.98, 1.0):
        allowed = (int(rng.integers(n)), *(int(i) for i in np.flatnonzero(rng.random(n) < share)))
        for seed in range(8):
            for temperature, top_k in ((0.0, 0), (1.0, 0), (3.0, 0), (3.0, 5)):
                ask = Ask(temperature, top_k, seed=seed, allowed=allowed)
                assert draw(logits, ask) == expected_draw(logits, ask)
                assert draw(logits, ask) in allowed


def test_a_mask_without_tokens_has_no_token() -> None:
    for temperature in (0.0, 1.0):
        assert draw(random_logits(100, 1), Ask(temperature, allowed=())) == -1


# ------------------------------------------------------------------------------------------- each parameter by itself


def test_repetition_divides_positive_and_multiplies_negative_logits() -> None:
    assert draw(f32([4, 3, -1, -9]), Ask(0, repetition=2, seen=(0,))) == 1
    assert draw(f32([-1, -1.5]), Ask(0, repetition=2, seen=(0,))) == 1
    assert draw(f32([-1, -1.5]), Ask(0, repetition=0.5, seen=(1,))) == 1


def test_presence_counts_once_and_frequency_each_time() -> None:
    logits = f32([5, 4, 3])
    assert draw(logits, Ask(0, presence=0.9, counts={0: 100})) == 0
    assert draw(logits, Ask(0, presence=1.1, counts={0: 100})) == 1
    assert draw(logits, Ask(0, frequency=0.3, counts={0: 3})) == 0
    assert draw(logits, Ask(0, frequency=0.3, counts={0: 4})) == 1


def test_a_bias_forbids_and_forces_tokens() -> None:
    logits = random_logits(50, 3)
    best, second = np.argsort(-logits)[:2]
    assert draw(logits, Ask(0, bias={int(best): -100.0})) == second
    for seed in range(20):
        assert draw(logits, Ask(seed=seed, bias={33: 100.0})) == 33
        assert draw(f32([1, 1]), Ask(seed=seed, bias={0: -1e6})) == 1


def test_impossible_tokens_are_never_drawn() -> None:
    logits = np.full(40, -np.inf, f32)
    logits[[7, 31]] = 0
    drawn = {draw(logits, Ask(seed=s, top_k=k, top_p=p)) for s in range(40) for k in (0, 10) for p in (0.0, 0.99)}
    assert drawn == {7, 31}


def test_top_k_1_and_a_tiny_top_p_are_greedy() -> None:
    logits = random_logits(1000, 8)
    for seed in range(20):
        assert draw(logits, Ask(top_k=1, seed=seed)) == np.argmax(logits)
        assert draw(logits, Ask(top_p=1e-9, seed=seed)) == np.argmax(logits)


def test_a_draw_depends_on_seed_and_position_alone() -> None:
    logits = random_logits(1000, 9)
    ask = Ask(2.0, seed=5, position=9)
    assert len({draw(logits, ask) for _ in range(5)}) == 1
    assert len({draw(logits, Ask(2.0, seed=s, position=9)) for s in range(20)}) > 10
    assert len({draw(logits, Ask(2.0, seed=5, position=p)) for p in range(20)}) > 10


@pytest.mark.parametrize("ask", [{}, {"top_k": 4}, {"top_p": 0.9}], ids=str)
def test_frequencies_are_the_probabilities(ask: dict[str, float]) -> None:
    logits = np.log(f32([0.4, 0.3, 0.15, 0.1, 0.05]))
    kept = {"top_k": 4, "top_p": 4}.get(next(iter(ask), ""), 5)
    expected = np.array([0.4, 0.3, 0.15, 0.1, 0.05]) * (np.arange(5) < kept)
    expected /= expected.sum()
    n = 8000
    counts = np.bincount([draw(logits, Ask(seed=s // 4, position=s % 4, **ask)) for s in range(n)], minlength=5)
    assert (counts[kept:] == 0).all()
    assert (np.abs(counts - n * expected) <= 4 * np.sqrt(n * expected)).all()


# -------------------------------------------------------------------------------------------------------- uniform


@kernel
def uniforms(I, E, tid, nth):
    """I: 2 n, 3 seeds, 4 positions, 5 out."""
    for i in range(I[2]):
        f64_ptr(I[5])[i] = uniform(i64_ptr(I[3])[i], i64_ptr(I[4])[i])


def test_the_random_numbers_are_those_of_the_reference_and_uniform() -> None:
    limits = np.array([0, 1, 2**53 - 1, 2**63 - 1])
    seeds = np.concatenate([np.repeat(limits, 4), np.repeat(np.arange(200), 200)])
    positions = np.concatenate([np.tile([0, 1, 4095, 2**31], 4), np.tile(np.arange(200), 200)])
    out = np.full(len(seeds), np.nan)
    run(uniforms, [len(seeds), seeds, positions, out])
    for seed, position, value in zip(seeds[:500].tolist(), positions[:500].tolist(), out[:500].tolist(), strict=True):
        assert value == expected_uniform(seed, position)
    assert ((out >= 0) & (out < 1)).all()
    grid = out[16:].reshape(200, 200)
    n = grid.size
    assert abs(grid.mean() - 0.5) < 4 / np.sqrt(12 * n)
    assert (np.abs(np.histogram(grid, 16, (0, 1))[0] - n / 16) < 4 * np.sqrt(n / 16)).all()
    for neighbours in (grid[1:] - 0.5, grid[:, 1:] - 0.5):
        here = (grid - 0.5)[: len(neighbours), : neighbours.shape[1]]
        assert abs((here * neighbours).mean()) < 4 / 12 / np.sqrt(n)
