"""Attention of encoders: every row of a sequence sees the whole sequence, and nothing is kept for later.

**Order.** As in causal attention: a score is one chain of FMAs over the head's columns, times the scale; softmax: the
largest score, e^(score - largest) summed in 16 lanes (lane = position mod 16), the lanes by the fixed tree; an output
is one chain of FMAs over ascending positions, times 1 / sum. None of this depends on other sequences of the batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from modelc.kernels.attention import softmax
from modelc.kernels.env import CHUNK, CONTROL, FLOATS, N_UNITS, PANEL, SCRATCH, SCRATCH_FLOATS, UNITS
from modelc.kernels.jit import kernel
from modelc.kernels.pointers import f32_of_bits, f32_ptr, i64_ptr
from modelc.kernels.simd import fma, load_f32, splat_at, splat_f32, splat_zero, store_f32, tile_f32
from modelc.kernels.sync import atomic_add

f32 = np.float32

QUERIES = PANEL  # of a tile
CHUNKS = 2  # of 16 positions


def make_full_attention(head_dim: int) -> Any:
    """Opcode: softmax(q k^T * scale) v for all rows of each sequence; UNITS are whole sequences (first row, count).

    I: 2 q, 3 row stride of q, k and v, 4 heads, 5 k, 6 v, 7 scale (bits), 8 out, 9 its row stride, 10 counter in
    CONTROL. Threads take (sequence, head) from the counter.
    SCRATCH: the keys of a head, transposed, and the scores of QUERIES rows.
    """
    vectors = head_dim // CHUNK
    columns = 2 if vectors % 2 == 0 else 1  # vectors of an output tile
    n_scores, n_outputs = QUERIES * CHUNKS, QUERIES * columns

    @kernel
    def transpose_keys(f, k, stride, count, t, width):
        """t[column * width + position] = a key's column; zeros behind the last position."""
        for i in range(count):
            for c in range(head_dim):
                t[c * width + i] = f[k + i * stride + c]
        for i in range(count, width):
            for c in range(head_dim):
                t[c * width + i] = f32(0.0)

    @kernel
    def score(f, q, stride, keys, width, scale, s):
        """s[u * width + position]: scores of QUERIES queries with all keys."""
        acc = tile_f32(n_scores)
        for p in range(0, width, CHUNK * CHUNKS):
            for i in range(n_scores):
                acc[i] = splat_zero()
            for c in range(head_dim):
                for j in range(CHUNKS):
                    column = load_f32(keys, c * width + p + j * CHUNK)
                    for u in range(QUERIES):
                        i = j * QUERIES + u
                        acc[i] = fma(column, splat_at(f, q + u * stride + c), acc[i])
            for j in range(CHUNKS):
                for u in range(QUERIES):
                    store_f32(s, u * width + p + j * CHUNK, acc[j * QUERIES + u] * splat_f32(scale))

    @kernel
    def weigh(f, v, stride, count, s, width, inverse, out, out_stride, valid):
        """out[u * out_stride + column] = the values weighted by s[u * width + position], for u < valid."""
        acc = tile_f32(n_outputs)
        for first in range(0, head_dim, CHUNK * columns):
            for i in range(n_outputs):
                acc[i] = splat_zero()
            for i in range(count):
                for j in range(columns):
                    value = load_f32(f, v + i * stride + first + j * CHUNK)
                    for u in range(QUERIES):
                        at = u * columns + j
                        acc[at] = fma(value, splat_at(s, u * width + i), acc[at])
            for u in range(QUERIES):
                if u < valid:
                    for j in range(columns):
                        store_f32(f, out + u * out_stride + first + j * CHUNK, acc[u * columns + j] * inverse[u])

    @kernel
    def full_attention(I, E, tid, nth):
        f = f32_ptr(E[FLOATS])
        control = i64_ptr(E[CONTROL])
        units = i64_ptr(E[UNITS])
        keys_at = E[SCRATCH] + tid * E[SCRATCH_FLOATS] * 4
        keys = f32_ptr(keys_at)
        inverse = tile_f32(QUERIES)
        scale = f32_of_bits(I[7])
        total = I[4] * E[N_UNITS]
        taken = atomic_add(control, I[10], 1)
        while taken < total:
            first = units[2 * (taken // I[4])]
            count = units[2 * (taken // I[4]) + 1]
            head = taken % I[4] * head_dim
            width = (count + CHUNK * CHUNKS - 1) // (CHUNK * CHUNKS) * CHUNK * CHUNKS
            s = f32_ptr(keys_at + head_dim * width * 4)
            row = first * I[3] + head
            transpose_keys(f, I[5] + row, I[3], count, keys, width)
            for t in range(0, count, QUERIES):
                score(f, I[2] + row + t * I[3], I[3], keys, width, scale, s)
                for u in range(QUERIES):
                    inverse[u] = splat_f32(softmax(s, u * width, s, u * width, 0, count))
                out = I[8] + (first + t) * I[9] + head
                weigh(f, I[6] + row, I[3], count, s, width, inverse, out, I[9], count - t)
            taken = atomic_add(control, I[10], 1)

    return full_attention
