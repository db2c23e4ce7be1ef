"""Rotary position embedding."""

from __future__ import annotations

from typing import Any

import numpy as np

from modelc.kernels.elementary import sincos
from modelc.kernels.env import (
    CONSTANTS,
    FLOATS,
    N_ROWS,
    POSITIONS,
    SCRATCH,
    SCRATCH_FLOATS,
)
from modelc.kernels.jit import kernel
from modelc.kernels.pointers import f32_of_bits, f32_ptr, f64_ptr, i64_ptr
from modelc.kernels.simd import (
    fma,
    load_f32,
    store_f32,
    swap_pairs_of,
)
from modelc.kernels.split import private_row, split, split_rows

f32 = np.float32


def make_rope_angles(style: str) -> Any:
    """Opcode: for each row the factors C and S of its position, so that rotated = x * C + partner * S.

    `pairs` rotates columns (2i, 2i + 1), `halves` columns (i, i + columns / 2).
    I: 2 float64 frequencies in CONSTANTS (index in doubles), 3 out (rows, 2, columns) f32, 4 columns rotated, 5 factor
        on C and S (bits).
    Source: RoFormer (arXiv 2104.09864).
    """
    pairs = style == "pairs"

    @kernel
    def rope_angles(I, E, tid, nth):
        frequencies = f64_ptr(E[CONSTANTS])
        f = f32_ptr(E[FLOATS])
        positions = i64_ptr(E[POSITIONS])
        columns = I[4]
        half = columns // 2
        factor = np.float64(f32_of_bits(I[5]))
        start, stop = split_rows(E, E[N_ROWS], tid, nth)
        for t in range(start, stop):
            out = I[3] + (t + private_row(E, tid)) * 2 * columns
            for i in range(half):
                s, c = sincos(np.float64(positions[t]) * frequencies[I[2] + i])
                first, second = (2 * i, 2 * i + 1) if pairs else (i, i + half)
                f[out + first] = f32(c * factor)
                f[out + second] = f32(c * factor)
                f[out + columns + first] = f32(-s * factor)
                f[out + columns + second] = f32(s * factor)

    return rope_angles


def make_rope(style: str, rotated: int) -> Any:
    """Opcode: rotate the first `rotated` columns of heads in place.

    I: 2 x, 3 row stride, 4 heads, 5 angles of `rotated` columns as `rope_angles` wrote them, 6 columns of a head.
    """
    pairs = style == "pairs"

    @kernel
    def rope(I, E, tid, nth):
        f = f32_ptr(E[FLOATS])
        copy = f32_ptr(E[SCRATCH] + tid * E[SCRATCH_FLOATS] * 4)  # the head twice, so that its partner is one load
        start, stop = split_rows(E, E[N_ROWS], tid, nth)
        first, last = (0, I[4]) if E[N_ROWS] > 1 else split(I[4], tid, nth)
        for t in range(start, stop):
            angles = I[5] + (t + private_row(E, tid)) * 2 * rotated
            for h in range(first, last):
                x = I[2] + t * I[3] + h * I[6]
                if not pairs:
                    for i in range(0, rotated, 16):
                        store_f32(copy, i, load_f32(f, x + i))
                        store_f32(copy, rotated + i, load_f32(f, x + i))
                for i in range(0, rotated, 16):
                    value = load_f32(f, x + i)
                    partner = swap_pairs_of(value, value) if pairs else load_f32(copy, i + rotated // 2)
                    turned = fma(value, load_f32(f, angles + i), partner * load_f32(f, angles + rotated + i))
                    store_f32(f, x + i, turned)

    return rope
