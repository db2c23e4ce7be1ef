"""Normalisation opcodes, with the pending residual added on the way."""

from __future__ import annotations

from typing import Any

import numpy as np

from modelc.kernels.activations import make_quantize_blocks, panel_row
from modelc.kernels.env import (
    CONSTANTS,
    FLOATS,
    N_OUT,
    N_ROWS,
    OUT_ROWS,
    PANEL,
    QUANTS,
    RECORD_BYTES,
    SCRATCH,
    SCRATCH_FLOATS,
)
from modelc.kernels.jit import kernel
from modelc.kernels.pointers import f32_of_bits, f32_ptr, i64_ptr
from modelc.kernels.simd import fma, load_f32, splat_f32, splat_zero, store_f32, sum_lanes
from modelc.kernels.split import private_row, split_rows

f32 = np.float32


@kernel
def normalize_row(f, x, stride, residual, weight, w, out, o, cols, eps):
    """f[x ...] += f[residual ...] (unless negative); out[o ...] = f[x ...] / sqrt(mean square + eps) * weight[w ...].

    Order: lane i of two accumulators takes columns i, i + 32, ... and i + 16, i + 48, ...; both are added, then the
    lanes by the fixed tree.
    """
    even = splat_zero()
    odd = splat_zero()
    for i in range(0, stride, 32):
        x0 = load_f32(f, x + i)
        x1 = load_f32(f, x + i + 16)
        if residual >= 0:
            x0 = x0 + load_f32(f, residual + i)
            x1 = x1 + load_f32(f, residual + i + 16)
            store_f32(f, x + i, x0)
            store_f32(f, x + i + 16, x1)
        even = fma(x0, x0, even)
        odd = fma(x1, x1, odd)
    mean = sum_lanes(even + odd) / f32(cols)
    scale = splat_f32(f32(1.0) / np.sqrt(mean + eps))
    for i in range(0, stride, 16):
        store_f32(out, o + i, load_f32(f, x + i) * scale * load_f32(weight, w + i))


@kernel
def norm_rows(I, E, tid, nth):
    """Rows (start, stop) of thread `tid`: of the batch, or of those whose logits are wanted (I[9])."""
    return split_rows(E, E[N_OUT] if I[9] == 1 and E[N_ROWS] > 1 else E[N_ROWS], tid, nth)


@kernel
def norm_row(I, E, t):
    """The row of x that is normalised as row t."""
    return i64_ptr(E[OUT_ROWS])[t] if I[9] == 1 and E[N_ROWS] > 1 else t


@kernel
def rms_norm(I, E, tid, nth):
    """Add, then normalise: x += residual; out = x / sqrt(mean(x^2) + eps) * weight, row by row.

    I: 2 x, 3 row stride of all three buffers (a multiple of 32, padded with zeros), 4 residual or -1, 5 weight in
    CONSTANTS, 6 out, 7 eps (bits), 8 columns, 9 1 = only the rows whose logits are wanted.
    """
    f = f32_ptr(E[FLOATS])
    weight = f32_ptr(E[CONSTANTS])
    private = private_row(E, tid)
    start, stop = norm_rows(I, E, tid, nth)
    for t in range(start, stop):
        row = norm_row(I, E, t)
        residual = I[4] + row * I[3] if I[4] >= 0 else -1
        out = I[6] + (t + private) * I[3]
        x = I[2] + (row + private) * I[3]
        normalize_row(f, x, I[3], residual, weight, I[5], f, out, I[8], f32_of_bits(I[7]))


def make_rms_norm_quantize(activation: str) -> Any:
    """Opcode: `rms_norm` and `quantize` row by row, while the row is in the nearest cache. I[6] is a byte in QUANTS."""
    record = RECORD_BYTES[activation]
    quantize_blocks = make_quantize_blocks(activation)

    @kernel
    def rms_norm_quantize(I, E, tid, nth):
        f = f32_ptr(E[FLOATS])
        weight = f32_ptr(E[CONSTANTS])
        h = f32_ptr(E[SCRATCH] + tid * E[SCRATCH_FLOATS] * 4)
        private = private_row(E, tid)
        start, stop = norm_rows(I, E, tid, nth)
        nb = I[8] // 32
        for t in range(start, stop):
            row = norm_row(I, E, t)
            residual = I[4] + row * I[3] if I[4] >= 0 else -1
            x = I[2] + (row + private) * I[3]
            normalize_row(f, x, I[3], residual, weight, I[5], h, 0, I[8], f32_of_bits(I[7]))
            target = panel_row(I[6], t + private * PANEL, nb, record)
            quantize_blocks(h, 0, 0, nb, E[QUANTS], target)

    return rms_norm_quantize
