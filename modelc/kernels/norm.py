"""Normalisation opcodes, with the pending residual added on the way."""

from __future__ import annotations

import numpy as np

from modelc.kernels.env import CONSTANTS, FLOATS, N_OUT, N_ROWS, OUT_ROWS
from modelc.kernels.jit import kernel
from modelc.kernels.pointers import f32_of_bits, f32_ptr, i64_ptr
from modelc.kernels.simd import fma, load_f32, splat_f32, splat_zero, store_f32, sum_lanes
from modelc.kernels.split import private_row, split_rows

f32 = np.float32


@kernel
def rms_norm(I, E, tid, nth):
    """Add, then normalise: x += residual; out = x / sqrt(mean(x^2) + eps) * weight, row by row.

    I: 2 x, 3 row stride of all three buffers (a multiple of 32, padded with zeros), 4 residual or -1, 5 weight in
        CONSTANTS, 6 out, 7 eps (bits), 8 columns, 9 1 = only the rows whose logits are wanted.
    Order: lane i of two accumulators takes columns i, i + 32, ... and i + 16, i + 48, ...; both are added, then the
        lanes by the fixed tree.
    """
    f = f32_ptr(E[FLOATS])
    weight = f32_ptr(E[CONSTANTS])
    stride = I[3]
    residual = I[4]
    private = private_row(E, tid)
    out_rows = i64_ptr(E[OUT_ROWS])
    gathered = I[9] == 1 and E[N_ROWS] > 1
    start, stop = split_rows(E, E[N_OUT] if gathered else E[N_ROWS], tid, nth)
    for t in range(start, stop):
        row = out_rows[t] if gathered else t
        x = I[2] + (row + private) * stride
        even = splat_zero()
        odd = splat_zero()
        if residual >= 0:
            r = residual + row * stride
            for i in range(0, stride, 32):
                x0 = load_f32(f, x + i) + load_f32(f, r + i)
                x1 = load_f32(f, x + i + 16) + load_f32(f, r + i + 16)
                store_f32(f, x + i, x0)
                store_f32(f, x + i + 16, x1)
                even = fma(x0, x0, even)
                odd = fma(x1, x1, odd)
        else:
            for i in range(0, stride, 32):
                x0 = load_f32(f, x + i)
                x1 = load_f32(f, x + i + 16)
                even = fma(x0, x0, even)
                odd = fma(x1, x1, odd)
        mean = sum_lanes(even + odd) / f32(I[8])
        scale = splat_f32(f32(1.0) / np.sqrt(mean + f32_of_bits(I[7])))
        out = I[6] + (t + private) * stride
        for i in range(0, stride, 16):
            store_f32(f, out + i, load_f32(f, x + i) * scale * load_f32(weight, I[5] + i))
