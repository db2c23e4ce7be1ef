"""The three ways through attention, each against one reference that knows nothing of batches, pages or tiles."""

import functools
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pytest

from modelc.kernels import env
from modelc.kernels.attention import largest_divisor
from modelc.kernels.env import PAGE
from tests.kernels.float_math import F32, assert_same_bits, exp, fma, sum_lanes
from tests.kernels.kv_records import Records, head_dtype, quantized, store_keys, store_values
from tests.kernels.opcode_runner import UNWRITTEN, float_bits, is_unwritten, run, unwritten

f32 = np.float32

# (head_dim, heads that share keys, type of keys and values, hot window of `mixed`, sliding window)
Variant: TypeAlias = tuple[int, int, str, int] | tuple[int, int, str, int, int]
VARIANTS: list[Variant] = [
    (16, 2, "f32", 0),
    (32, 1, "f32", 0),
    (64, 3, "f16", 0),
    (80, 8, "f16", 0),
    (128, 2, "f16", 0),
    (16, 2, "int8", 0),
    (64, 3, "int8", 0),
    *((16, 2, "mixed", window) for window in (0, 1, 2, 16, 23, 64, 129, 1 << 31)),
    (64, 3, "mixed", 64),
    (32, 8, "mixed", 23),
    *((16, 2, "f32", 0, sliding) for sliding in (1, 15, 16, 17, 64, 130)),
    (256, 4, "f16", 0, 70),
    (16, 2, "int8", 0, 33),
    (64, 3, "int8", 0, 64),
    *((16, 2, "mixed", 23, sliding) for sliding in (10, 23, 64)),
    (32, 8, "mixed", 64, 70),
]
LENGTHS = (1, 15, 16, 17, 63, 64, 65, 130)  # around chunks of 16 and pages of 64
KV_HEADS = 2
N_POSITIONS = LENGTHS[-1] + 7
PAGE_TABLE = np.array([[0, 0, 0], [4, 1, 3]])  # the sequence is in slot 1
N_PAGES = 5
LAYER_AT = 96
SCORES_STRIDE = 3 * PAGE


@dataclass(frozen=True)
class Stored:
    """Keys, or values, of a sequence as they are read: in codes, in floats, or in both forms.

    Attributes:
        codes: float32 (positions, heads, head_dim).
        scales: float32 (positions, heads).
        floats: float32 (positions, heads, head_dim), of f16 too.
    """

    codes: F32
    scales: F32
    floats: F32

    @classmethod
    def of(cls, x: F32) -> "Stored":
        codes, scales = quantized(x)
        return cls(codes.astype(f32), scales, x)

    def for_group(self, group: int) -> "Stored":
        """Once for each of the heads that share it."""
        return Stored(*(np.repeat(x, group, 1) for x in (self.codes, self.scales, self.floats)))


def attend(q: F32, k: Stored, v: Stored, positions: np.ndarray, scale: float, cold: np.ndarray, low: np.ndarray) -> F32:
    """Softmax(q k * scale) v in the order that `kernels.attention` lays down; (queries, heads, head_dim).

    q (queries, heads, head_dim) at `positions`; k and v of the kv heads; cold (queries): positions before it are read
    in codes; low (queries): those before it are not seen.
    """
    group = q.shape[1] // k.scales.shape[1]
    k, v = k.for_group(group), v.for_group(group)
    n_positions = len(k.scales)
    n = (n_positions + 15) // 16 * 16

    def scores(keys: F32) -> F32:
        chain = np.zeros((len(q), q.shape[1], n_positions), f32)
        for d in range(q.shape[2]):
            chain = fma(keys[:, :, d].T, q[:, :, d, None], chain)
        return chain

    at = np.arange(n_positions)
    visible = (low[:, None, None] <= at) & (at <= positions[:, None, None])
    in_codes = np.arange(n_positions) < cold[:, None, None]
    of_codes, of_floats = scores(k.codes) * (f32(scale) * k.scales.T), scores(k.floats) * f32(scale)
    s = np.where(visible, np.where(in_codes, of_codes, of_floats), f32(-np.inf))
    e = np.zeros((len(q), q.shape[1], n), f32)
    e[..., :n_positions] = exp(s - s.max(-1, keepdims=True))
    lanes = np.zeros((len(q), q.shape[1], 16), f32)
    for chunk in range(0, n, 16):
        lanes = lanes + e[..., chunk : chunk + 16]
    inverse = f32(1) / sum_lanes(lanes)
    weights = np.where(in_codes, e[..., :n_positions] * v.scales.T, e[..., :n_positions])
    out = np.zeros(q.shape, f32)
    for i in range(n_positions):
        at = slice(i, i + 1)
        value = np.where(in_codes[:, :, at], v.codes[i], v.floats[i])
        out = np.where(visible[:, :, at], fma(value, weights[:, :, at], out), out)
    return out * inverse[..., None]


@dataclass(frozen=True)
class Sequence:
    """A sequence's queries and expected outputs by position, and its keys and values."""

    head_dim: int
    group: int
    kv: str
    window: int
    sliding: int
    q: F32  # (positions, heads, head_dim)
    k: F32  # (positions, kv_heads, head_dim)
    v: F32
    expected: F32

    @property
    def heads(self) -> int:
        return KV_HEADS * self.group

    @functools.cached_property
    def page(self) -> np.dtype:
        return np.dtype([("before", "u1", LAYER_AT), ("heads", head_dtype(self.head_dim, self.kv), KV_HEADS)])

    def cache(self, n: int) -> Records:
        """Pages with keys and values of the first n positions; NaNs where nothing was written yet."""
        pages = np.full(N_PAGES * self.page.itemsize, 0xFF, np.uint8).view(self.page)
        for position in range(n):
            heads = pages["heads"][PAGE_TABLE[1, position // PAGE]]
            store_keys(heads, position % PAGE, self.k[position])
            store_values(heads, position % PAGE, self.v[position])
        return pages

    def run(self, units: list[tuple[int, int]], n_threads: int) -> F32:
        """Units of (first position, count) as one batch; (rows, heads, head_dim) in the order of the units."""
        positions = np.concatenate([np.arange(first, first + count) for first, count in units])
        rows, width = len(positions), self.heads * self.head_dim
        q = unwritten(rows + 7, width + 3)  # a run of 8 reads past the last row
        q[:rows, :width] = self.q[positions].reshape(rows, width)
        scores, out = unwritten(self.heads, SCORES_STRIDE), unwritten(rows + 1, width + 5)
        memory = np.concatenate([part.reshape(-1) for part in (q, scores, out)])
        first_rows = np.cumsum([0, *(count for _, count in units[:-1])])
        environment = {
            env.FLOATS: memory,
            env.KV: self.cache(positions.max() + 1),
            env.PAGES: PAGE_TABLE,
            env.PAGES_PER_SLOT: 3,
            env.PAGE_BYTES: self.page.itemsize,
            env.SLOTS: np.ones(rows, np.int64),
            env.POSITIONS: positions,
            env.UNITS: np.column_stack([first_rows, [count for _, count in units]]),
            env.N_ROWS: rows,
            env.N_UNITS: len(units),
            env.SCRATCH_FLOATS: 8 * SCORES_STRIDE,
        }
        scale = float_bits(self.head_dim**-0.5)
        fields = [0, width + 3, self.heads, KV_HEADS, LAYER_AT, scale, q.size, SCORES_STRIDE]
        fields += [q.size + scores.size, width + 5, env.FIRST_COUNTER, self.window, self.sliding]
        variant = f"{self.head_dim}.{self.group}.{self.kv}"
        run(f"attention_scores.{variant}", fields, environment, n_threads)
        run(f"attention.{variant}", fields, environment, n_threads)
        out = memory[q.size + scores.size :].reshape(rows + 1, width + 5)
        assert is_unwritten(out[rows:])
        assert is_unwritten(out[:, width:])
        return out[:rows, :width].reshape(rows, self.heads, self.head_dim)

    def check(self, units: list[tuple[int, int]], n_threads: int = 1) -> None:
        positions = np.concatenate([np.arange(first, first + count) for first, count in units])
        assert_same_bits(self.run(units, n_threads), self.expected[positions])


def first_float(kv: str, window: int, positions: np.ndarray) -> np.ndarray:
    """For each query: the position from which it reads floats."""
    return {"int8": positions + 1, "mixed": positions + 1 - window}.get(kv, np.zeros_like(positions))


@functools.cache
def sequence(head_dim: int, group: int, kv: str, window: int, sliding: int = 0) -> Sequence:
    rng = np.random.default_rng(head_dim)
    q = rng.standard_normal((N_POSITIONS, KV_HEADS * group, head_dim), f32)
    k, v = rng.standard_normal((2, N_POSITIONS, KV_HEADS, head_dim), f32)
    if kv == "f16":
        k, v = k.astype(np.float16).astype(f32), v.astype(np.float16).astype(f32)
    positions = np.unique([n - 1 + i for n in LENGTHS for i in range(8)])
    expected = np.full(q.shape, UNWRITTEN, f32)
    cold = first_float(kv, window, positions)
    low = np.maximum(positions + 1 - sliding, 0) if sliding else np.zeros_like(positions)
    expected[positions] = attend(q[positions], Stored.of(k), Stored.of(v), positions, head_dim**-0.5, cold, low)
    return Sequence(head_dim, group, kv, window, sliding, q, k, v, expected)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_one_row_shared_by_all_threads_has_the_bits_of_the_formula(variant: Variant) -> None:
    s = sequence(*variant)
    for n in LENGTHS:
        for n_threads in (1, 2, 3, 5):
            s.check([(n - 1, 1)], n_threads)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_single_rows_in_a_batch_have_the_bits_of_the_formula(variant: Variant) -> None:
    sequence(*variant).check([(n - 1, 1) for n in LENGTHS], n_threads=2)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_runs_of_rows_have_the_bits_of_the_formula(variant: Variant) -> None:
    s = sequence(*variant)
    for count in range(2, 9):
        s.check([(n - 1, count) for n in LENGTHS], n_threads=count % 3 + 1)


def test_runs_and_single_rows_mix() -> None:
    for variant in ((64, 3, "f16", 0), (64, 3, "int8", 0), (64, 3, "mixed", 64)):
        sequence(*variant).check([(0, 8), (129, 1), (14, 3), (64, 1), (62, 8), (16, 2)], n_threads=2)


@pytest.mark.parametrize(
    ("variant", "error"), [((16, 2, "f32", 0), 1e-6), ((16, 2, "int8", 0), 0.02), ((16, 2, "mixed", 64), 0.02)], ids=str
)
def test_the_reference_is_near_the_truth(variant: Variant, error: float) -> None:
    s = sequence(*variant)
    q, k, v = s.q[64].astype(np.float64), *(np.repeat(x[:65].astype(np.float64), s.group, 1) for x in (s.k, s.v))
    scores = np.einsum("hd,phd->hp", q, k) / 4
    weights = np.exp(scores - scores.max(1, keepdims=True))
    truth = np.einsum("hp,phd->hd", weights / weights.sum(1, keepdims=True), v)
    assert np.abs(s.expected[64] - truth).max() < error


@pytest.mark.parametrize("variant", [(16, 2, "f32", 0, 20), (16, 2, "int8", 0, 20), (16, 2, "mixed", 9, 20)], ids=str)
def test_what_the_window_has_left_is_not_read(variant: Variant) -> None:
    s = sequence(*variant)
    k, v = s.k.copy(), s.v.copy()
    k[:96] = v[:96] = np.nan if s.kv == "f32" else 1e30  # the queries from 129 on touch the chunk from 96 on
    forgotten = replace(s, k=k, v=v)
    forgotten.check([(129, 1)], n_threads=2)
    forgotten.check([(129, 7), (129, 1)], n_threads=2)


def test_a_window_as_long_as_the_sequence_changes_nothing() -> None:
    assert_same_bits(sequence(16, 2, "f32", 0, 1 << 31).expected, sequence(16, 2, "f32", 0).expected)
    assert (sequence(16, 2, "f32", 0, 130).expected[129] == sequence(16, 2, "f32", 0).expected[129]).all()
    assert (sequence(16, 2, "f32", 0, 129).expected[129] != sequence(16, 2, "f32", 0).expected[129]).any()


def test_no_window_is_int8_and_a_wide_one_is_f32() -> None:
    int8, f32_alone = sequence(16, 2, "int8", 0).expected, sequence(16, 2, "f32", 0).expected
    assert_same_bits(sequence(16, 2, "mixed", 0).expected, int8)
    assert_same_bits(sequence(16, 2, "mixed", 1 << 31).expected, f32_alone)
    between = sequence(16, 2, "mixed", 64).expected[129]
    assert (between != int8[129]).any()
    assert (between != f32_alone[129]).any()


@pytest.mark.parametrize("variant", [(16, 2, "f32", 0), (16, 2, "int8", 0), (16, 2, "mixed", 6)], ids=str)
def test_a_far_smaller_score_has_no_weight_and_a_large_one_does_not_overflow(
    variant: Variant,
) -> None:
    s = sequence(*variant)
    q = np.full_like(s.q, 1e4)
    k = np.where(np.arange(N_POSITIONS)[:, None, None] == 5, 1.0, -1.0).astype(f32) * np.ones_like(s.k)
    positions = np.arange(17)
    cold = first_float(s.kv, s.window, positions)
    expected = attend(q[:17], Stored.of(k[:17]), Stored.of(s.v[:17]), positions, 0.25, cold, 0 * positions)
    far = replace(s, q=q, k=k, expected=np.concatenate([expected, s.expected[17:]]))
    far.check([(16, 1)])
    far.check([(9, 8)])
    assert np.abs(expected[16] - np.repeat(s.v[5], s.group, 0)).max() <= (0 if s.kv == "f32" else 0.02)


@pytest.mark.parametrize(("n", "limit", "expected"), [(3, 8, 3), (12, 8, 6), (7, 2, 1), (16, 8, 8), (1, 1, 1)])
def test_largest_divisor(n: int, limit: int, expected: int) -> None:
    assert largest_divisor(n, limit) == expected
