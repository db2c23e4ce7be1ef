"""Attention over whole sequences against a reference that knows nothing of batches or tiles."""

import numpy as np
import pytest

from modelc.kernels import env
from tests.kernels.float_math import F32, assert_same_bits, exp, fma, sum_lanes
from tests.kernels.opcode_runner import Number, float_bits, is_unwritten, run, unwritten

f32 = np.float32
HEADS = 3
LENGTHS = (1, 7, 8, 9, 15, 16, 17, 32, 33, 70)  # around tiles of 8 queries and 2 chunks of 16 positions


def attend(q: F32, k: F32, v: F32, scale: float) -> F32:
    """Softmax(q k^T * scale) v in the order that the kernel lays down; all (positions, heads, head_dim)."""
    n, heads, head_dim = q.shape
    chain = np.zeros((n, heads, n), f32)
    for d in range(head_dim):
        chain = fma(k[:, :, d].T, q[:, :, d, None], chain)
    s = chain * f32(scale)
    padded = np.zeros((n, heads, (n + 15) // 16 * 16), f32)
    padded[..., :n] = exp(s - s.max(-1, keepdims=True))
    lanes = np.zeros((n, heads, 16), f32)
    for first in range(0, n, 16):
        lanes = lanes + padded[..., first : first + 16]
    out = np.zeros_like(q)
    for i in range(n):
        out = fma(v[i], padded[:, :, i, None], out)
    return out * (f32(1) / sum_lanes(lanes))[..., None]


def outputs(qkv: F32, lengths: list[int], head_dim: int, scale: float, n_threads: int) -> F32:
    """What the opcode makes of sequences side by side: qkv (rows, 3, heads, head_dim)."""
    n, dim = len(qkv), HEADS * head_dim
    memory = unwritten(n + 8, 4 * dim)  # q, k, v and the output of a row; tiles read up to 7 rows more
    memory[:n, : 3 * dim] = qkv.reshape(n, -1)
    starts = np.cumsum([0, *lengths[:-1]])
    units = np.stack([starts, lengths], 1).astype(np.int64)
    environment: dict[int, Number] = {
        env.FLOATS: memory,
        env.N_ROWS: n,
        env.UNITS: units,
        env.N_UNITS: len(lengths),
        env.SCRATCH_FLOATS: (head_dim + 8) * 128,
    }
    fields = [0, 4 * dim, HEADS, dim, 2 * dim, float_bits(scale), 3 * dim, 4 * dim, env.FIRST_COUNTER]
    run(f"full_attention.{head_dim}", fields, environment, n_threads)
    assert is_unwritten(memory[n:]), "rows behind the last"
    return memory[:n, 3 * dim :].reshape(n, HEADS, head_dim)


@pytest.mark.parametrize("head_dim", [16, 32, 48, 64])
def test_every_row_sees_its_whole_sequence_and_no_other(head_dim: int) -> None:
    rng = np.random.default_rng(head_dim)
    qkv = rng.standard_normal((sum(LENGTHS), 3, HEADS, head_dim)).astype(f32)
    expected, first = [], 0
    for n in LENGTHS:
        q, k, v = qkv[first : first + n].transpose(1, 0, 2, 3)
        expected.append(attend(q, k, v, 0.3))
        first += n
    for n_threads in (1, 2, 3):
        found = outputs(qkv, list(LENGTHS), head_dim, 0.3, n_threads)
        assert_same_bits(found, np.concatenate(expected))


def test_a_sequence_has_the_same_bits_alone() -> None:
    qkv = np.random.default_rng(1).standard_normal((40, 3, HEADS, 32)).astype(f32)
    together = outputs(qkv, [11, 29], 32, 1.0, 1)
    assert_same_bits(together[:11], outputs(qkv[:11], [11], 32, 1.0, 1))
    assert_same_bits(together[11:], outputs(qkv[11:], [29], 32, 1.0, 2))


def test_equal_keys_give_the_mean_of_the_values() -> None:
    qkv = np.random.default_rng(2).standard_normal((20, 3, HEADS, 16)).astype(f32)
    qkv[:, 1] = 0.5
    assert np.abs(outputs(qkv, [20], 16, 1.0, 1) - qkv[:, 2].mean(0)).max() < 1e-6
