"""Rotary position embedding, and the write of keys and values into their pages."""

from __future__ import annotations

from typing import Any

import numpy as np

from modelc.kernels.elementary import sincos
from modelc.kernels.env import (
    CHUNK,
    CONSTANTS,
    FLOATS,
    KV,
    KV_BYTES,
    N_ROWS,
    PAGE,
    PAGE_BYTES,
    PAGES,
    PAGES_PER_SLOT,
    POSITIONS,
    SCRATCH,
    SCRATCH_FLOATS,
    SLOTS,
)
from modelc.kernels.jit import inlined, kernel
from modelc.kernels.pointers import f32_of_bits, f32_ptr, f64_ptr, i16_ptr, i64_ptr, u8_ptr
from modelc.kernels.simd import (
    fma,
    load_f32,
    maximum,
    minimum,
    splat_f32,
    store_f16,
    store_f32,
    swap_pairs_of,
)
from modelc.kernels.split import private_row, split, split_rows

f32 = np.float32


def make_rope_angles(style: str) -> Any:
    """Opcode: for each row the factors C and S of its position, so that rotated = x * C + partner * S.

    `pairs` rotates columns (2i, 2i + 1), `halves` columns (i, i + head_dim / 2).
    I: 2 float64 frequencies in CONSTANTS (index in doubles), 3 out (rows, 2, head_dim) f32, 4 head_dim, 5 factor on C
        and S (bits).
    Source: RoFormer (arXiv 2104.09864).
    """
    pairs = style == "pairs"

    @kernel
    def rope_angles(I, E, tid, nth):
        frequencies = f64_ptr(E[CONSTANTS])
        f = f32_ptr(E[FLOATS])
        positions = i64_ptr(E[POSITIONS])
        head_dim = I[4]
        half = head_dim // 2
        factor = np.float64(f32_of_bits(I[5]))
        start, stop = split_rows(E, E[N_ROWS], tid, nth)
        for t in range(start, stop):
            out = I[3] + (t + private_row(E, tid)) * 2 * head_dim
            for i in range(half):
                s, c = sincos(np.float64(positions[t]) * frequencies[I[2] + i])
                first, second = (2 * i, 2 * i + 1) if pairs else (i, i + half)
                f[out + first] = f32(c * factor)
                f[out + second] = f32(c * factor)
                f[out + head_dim + first] = f32(-s * factor)
                f[out + head_dim + second] = f32(s * factor)

    return rope_angles


def make_rope(style: str, head_dim: int) -> Any:
    """Opcode: rotate heads in place. I: 2 x, 3 row stride, 4 heads, 5 angles as `rope_angles` wrote them."""
    pairs = style == "pairs"

    @kernel
    def rope(I, E, tid, nth):
        f = f32_ptr(E[FLOATS])
        copy = f32_ptr(E[SCRATCH] + tid * E[SCRATCH_FLOATS] * 4)  # the head twice, so that its partner is one load
        start, stop = split_rows(E, E[N_ROWS], tid, nth)
        first, last = (0, I[4]) if E[N_ROWS] > 1 else split(I[4], tid, nth)
        for t in range(start, stop):
            angles = I[5] + (t + private_row(E, tid)) * 2 * head_dim
            for h in range(first, last):
                x = I[2] + t * I[3] + h * head_dim
                if not pairs:
                    for i in range(0, head_dim, 16):
                        store_f32(copy, i, load_f32(f, x + i))
                        store_f32(copy, head_dim + i, load_f32(f, x + i))
                for i in range(0, head_dim, 16):
                    value = load_f32(f, x + i)
                    partner = swap_pairs_of(value, value) if pairs else load_f32(copy, i + head_dim // 2)
                    rotated = fma(value, load_f32(f, angles + i), partner * load_f32(f, angles + head_dim + i))
                    store_f32(f, x + i, rotated)

    return rope


@inlined
def finite_half(x):
    """x within the finite float16: an infinity would reach rows that must not see it, as 0 times infinity."""
    return minimum(maximum(x, splat_f32(f32(-65504.0))), splat_f32(f32(65504.0)))


def make_kv_write(head_dim: int, kv: str) -> Any:
    """Opcode: keys and values of the batch's rows into their pages.

    A page holds, for each layer and head, keys as (4 chunks, head_dim, 16 positions) and values as (64 positions,
    head_dim).
    I: 2 keys, 3 row stride of keys and values, 4 kv heads, 5 values, 6 the layer's byte offset in a page.
    """
    size = KV_BYTES[kv]
    half = kv == "f16"

    @kernel
    def kv_write(I, E, tid, nth):
        f = f32_ptr(E[FLOATS])
        positions = i64_ptr(E[POSITIONS])
        slots = i64_ptr(E[SLOTS])
        pages = i64_ptr(E[PAGES])
        scratch = E[SCRATCH] + tid * E[SCRATCH_FLOATS] * 4
        start, stop = split_rows(E, E[N_ROWS], tid, nth)
        first, last = (0, I[4]) if E[N_ROWS] > 1 else split(I[4], tid, nth)
        for t in range(start, stop):
            position = positions[t]
            page = pages[slots[t] * E[PAGES_PER_SLOT] + position // PAGE]
            at = position % PAGE
            for h in range(first, last):
                keys = E[KV] + page * E[PAGE_BYTES] + I[6] + h * 2 * PAGE * head_dim * size
                column = at // CHUNK * head_dim * CHUNK + at % CHUNK
                values = keys + (PAGE + at) * head_dim * size
                k = I[2] + t * I[3] + h * head_dim
                v = I[5] + t * I[3] + h * head_dim
                if half:
                    for i in range(0, head_dim, 16):
                        store_f16(u8_ptr(scratch), 0, finite_half(load_f32(f, k + i)))
                        for j in range(16):
                            i16_ptr(keys)[column + (i + j) * CHUNK] = i16_ptr(scratch)[j]
                        store_f16(u8_ptr(values), 2 * i, finite_half(load_f32(f, v + i)))
                else:
                    for i in range(head_dim):
                        f32_ptr(keys)[column + i * CHUNK] = f[k + i]
                    for i in range(0, head_dim, 16):
                        store_f32(f32_ptr(values), i, load_f32(f, v + i))

    return kv_write
