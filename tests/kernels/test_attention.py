"""The three ways through attention, each against one reference that knows nothing of batches, pages or tiles."""

import functools
from dataclasses import dataclass

import numpy as np
import pytest

from modelc.kernels import env
from modelc.kernels.attention import largest_divisor
from modelc.kernels.env import PAGE
from tests.kernels.float_math import F32, assert_same_bits, exp, fma, sum_lanes
from tests.kernels.opcode_runner import UNWRITTEN, float_bits, is_unwritten, run, unwritten

f32 = np.float32

# (head_dim, heads that share keys, element type of keys and values)
VARIANTS = [(16, 2, "f32"), (32, 1, "f32"), (64, 3, "f16"), (80, 8, "f16"), (128, 2, "f16")]
LENGTHS = (1, 15, 16, 17, 63, 64, 65, 130)  # around chunks of 16 and pages of 64
KV_HEADS = 2
N_POSITIONS = LENGTHS[-1] + 7
PAGE_TABLE = np.array([[0, 0, 0], [4, 1, 3]])  # the sequence is in slot 1
N_PAGES = 5
LAYER_AT = 96
SCORES_STRIDE = 3 * PAGE


def attend(q: F32, k: F32, v: F32, positions: np.ndarray, scale: float) -> F32:
    """Softmax(q k * scale) v in the order that `kernels.attention` lays down; (queries, heads, head_dim).

    q (queries, heads, head_dim) at `positions`; k and v (positions, kv_heads, head_dim).
    """
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    n = (len(k) + 15) // 16 * 16
    scores = np.zeros((len(q), q.shape[1], len(k)), f32)
    for d in range(q.shape[2]):
        scores = fma(k[:, :, d].T, q[:, :, d, None], scores)
    visible = np.arange(len(k)) <= positions[:, None, None]
    scores = np.where(visible, scores * f32(scale), f32(-np.inf))
    e = np.zeros((len(q), q.shape[1], n), f32)
    e[..., : len(k)] = exp(scores - scores.max(-1, keepdims=True))
    lanes = np.zeros((len(q), q.shape[1], 16), f32)
    for chunk in range(0, n, 16):
        lanes = lanes + e[..., chunk : chunk + 16]
    inverse = f32(1) / sum_lanes(lanes)
    out = np.zeros(q.shape, f32)
    for i in range(len(k)):
        out = np.where(visible[:, :, i : i + 1], fma(v[i], e[:, :, i : i + 1], out), out)
    return out * inverse[..., None]


@dataclass(frozen=True)
class Sequence:
    """A sequence's queries and expected outputs by position, and its keys and values."""

    head_dim: int
    group: int
    kv: str
    q: F32  # (positions, heads, head_dim)
    k: np.ndarray  # (positions, kv_heads, head_dim), in the stored type
    v: np.ndarray
    expected: F32

    @property
    def heads(self) -> int:
        return KV_HEADS * self.group

    @property
    def page_bytes(self) -> int:
        return LAYER_AT + KV_HEADS * 2 * PAGE * self.head_dim * self.k.itemsize

    def cache(self, n: int) -> np.ndarray:
        """Pages with keys and values of the first n positions; NaNs where nothing was written yet."""
        pages = np.full((N_PAGES, self.page_bytes), 0xFF, np.uint8)
        for position in range(n):
            page = pages[PAGE_TABLE[1, position // PAGE], LAYER_AT:].view(self.k.dtype).reshape(KV_HEADS, 2, -1)
            at = position % PAGE
            page[:, 0].reshape(KV_HEADS, 4, self.head_dim, 16)[:, at // 16, :, at % 16] = self.k[position]
            page[:, 1].reshape(KV_HEADS, PAGE, self.head_dim)[:, at] = self.v[position]
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
            env.PAGE_BYTES: self.page_bytes,
            env.SLOTS: np.ones(rows, np.int64),
            env.POSITIONS: positions,
            env.UNITS: np.column_stack([first_rows, [count for _, count in units]]),
            env.N_ROWS: rows,
            env.N_UNITS: len(units),
            env.SCRATCH_FLOATS: 8 * SCORES_STRIDE,
        }
        scale = float_bits(self.head_dim**-0.5)
        fields = [0, width + 3, self.heads, KV_HEADS, LAYER_AT, scale, q.size, SCORES_STRIDE]
        variant = f"{self.head_dim}.{self.group}.{self.kv}"
        run(f"attention_scores.{variant}", fields, environment, n_threads)
        fields += [q.size + scores.size, width + 5, env.FIRST_COUNTER]
        run(f"attention.{variant}", fields, environment, n_threads)
        out = memory[q.size + scores.size :].reshape(rows + 1, width + 5)
        assert is_unwritten(out[rows:])
        assert is_unwritten(out[:, width:])
        return out[:rows, :width].reshape(rows, self.heads, self.head_dim)

    def check(self, units: list[tuple[int, int]], n_threads: int = 1) -> None:
        positions = np.concatenate([np.arange(first, first + count) for first, count in units])
        assert_same_bits(self.run(units, n_threads), self.expected[positions])


@functools.cache
def sequence(head_dim: int, group: int, kv: str) -> Sequence:
    rng = np.random.default_rng(head_dim)
    q = rng.standard_normal((N_POSITIONS, KV_HEADS * group, head_dim), f32)
    k, v = (rng.standard_normal((2, N_POSITIONS, KV_HEADS, head_dim), f32)).astype("f2" if kv == "f16" else "f4")
    positions = np.unique([n - 1 + i for n in LENGTHS for i in range(8)])
    expected = np.full(q.shape, UNWRITTEN, f32)
    expected[positions] = attend(q[positions], k.astype(f32), v.astype(f32), positions, head_dim**-0.5)
    return Sequence(head_dim, group, kv, q, k, v, expected)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_one_row_shared_by_all_threads_has_the_bits_of_the_formula(variant: tuple[int, int, str]) -> None:
    s = sequence(*variant)
    for n in LENGTHS:
        for n_threads in (1, 2, 3, 5):
            s.check([(n - 1, 1)], n_threads)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_single_rows_in_a_batch_have_the_bits_of_the_formula(variant: tuple[int, int, str]) -> None:
    sequence(*variant).check([(n - 1, 1) for n in LENGTHS], n_threads=2)


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_runs_of_rows_have_the_bits_of_the_formula(variant: tuple[int, int, str]) -> None:
    s = sequence(*variant)
    for count in range(2, 9):
        s.check([(n - 1, count) for n in LENGTHS], n_threads=count % 3 + 1)


def test_runs_and_single_rows_mix() -> None:
    sequence(*VARIANTS[2]).check([(0, 8), (129, 1), (14, 3), (64, 1), (62, 8), (16, 2)], n_threads=2)


def test_the_reference_is_near_the_truth() -> None:
    s = sequence(*VARIANTS[0])
    q, k, v = s.q[64].astype(np.float64), *(np.repeat(x[:65].astype(np.float64), s.group, 1) for x in (s.k, s.v))
    scores = np.einsum("hd,phd->hp", q, k) / 4
    weights = np.exp(scores - scores.max(1, keepdims=True))
    truth = np.einsum("hp,phd->hd", weights / weights.sum(1, keepdims=True), v)
    assert np.abs(s.expected[64] - truth).max() < 1e-6


def test_a_far_smaller_score_has_no_weight_and_a_large_one_does_not_overflow() -> None:
    s = sequence(*VARIANTS[0])
    q = np.full_like(s.q, 1e4)
    k = np.where(np.arange(N_POSITIONS)[:, None, None] == 5, 1.0, -1.0).astype(f32) * np.ones_like(s.k)
    expected = attend(q[:17], k[:17], s.v[:17], np.arange(17), 0.25)
    far = Sequence(s.head_dim, s.group, s.kv, q, k, s.v, np.concatenate([expected, s.expected[17:]]))
    far.check([(16, 1)])
    far.check([(9, 8)])
    assert_same_bits(expected[16], np.repeat(s.v[5], s.group, 0))


@pytest.mark.parametrize(("n", "limit", "expected"), [(3, 8, 3), (12, 8, 6), (7, 2, 1), (16, 8, 8), (1, 1, 1)])
def test_largest_divisor(n: int, limit: int, expected: int) -> None:
    assert largest_divisor(n, limit) == expected
