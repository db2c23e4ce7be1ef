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
from modelc.kernels.split import private_row, split, split_rows

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
def layer_norm_row(f, x, stride, residual, weight, w, bias, out, o, cols, eps):
    """As `normalize_row`, but (f[x ...] - mean) / sqrt(variance + eps) * weight[w ...] + weight[bias ...].

    Order: lane i takes columns i, i + 16, ... of the mean, then of the squared differences; lanes by the fixed tree.
    """
    total = splat_zero()
    for i in range(0, stride, 16):
        v = load_f32(f, x + i)
        if residual >= 0:
            v = v + load_f32(f, residual + i)
            store_f32(f, x + i, v)
        total = total + v  # padding is zero
    mean = sum_lanes(total) / f32(cols)
    squares = splat_zero()
    for i in range(0, cols // 16 * 16, 16):
        d = load_f32(f, x + i) - splat_f32(mean)
        squares = fma(d, d, squares)
    variance = sum_lanes(squares)
    for i in range(cols // 16 * 16, cols):
        variance = variance + (f[x + i] - mean) * (f[x + i] - mean)
    scale = splat_f32(f32(1.0) / np.sqrt(variance / f32(cols) + eps))
    for i in range(0, stride, 16):
        v = (load_f32(f, x + i) - splat_f32(mean)) * scale
        store_f32(out, o + i, fma(v, load_f32(weight, w + i), load_f32(weight, bias + i)))


@kernel
def norm_rows(I, E, tid, nth):
    """Rows (start, stop) of thread `tid`: of the batch, or of those whose logits are wanted (I[9])."""
    return split_rows(E, E[N_OUT] if I[9] == 1 and E[N_ROWS] > 1 else E[N_ROWS], tid, nth)


def make_norm(kind: str, activation: str | None = None) -> Any:
    """Opcode: x += residual; out = norm(x), row by row; `kind` is `rms` or `layer`.

    I: 2 x, 3 row stride of all three buffers (a multiple of 32, padded with zeros), 4 residual or -1, 5 weight in
    CONSTANTS, 6 out, 7 eps (bits), 8 columns, 9 1 = only the rows whose logits are wanted, 10 and 11 1 = x, residual
    are private rows in a one-row batch, 12 bias in CONSTANTS (layer norm).

    With an activation format, rows are quantized while they are in the nearest cache, and out is a byte in QUANTS.
    """
    layer = kind == "layer"
    quantized = activation is not None
    record = RECORD_BYTES[activation or "a8"]
    quantize_blocks = make_quantize_blocks(activation or "a8")

    @kernel
    def norm(I, E, tid, nth):
        f = f32_ptr(E[FLOATS])
        weight = f32_ptr(E[CONSTANTS])
        scratch = f32_ptr(E[SCRATCH] + tid * E[SCRATCH_FLOATS] * 4)
        out_rows = i64_ptr(E[OUT_ROWS])
        gathered = I[9] == 1 and E[N_ROWS] > 1
        private = private_row(E, tid)
        stride = I[3]
        eps = f32_of_bits(I[7])
        start, stop = norm_rows(I, E, tid, nth)
        for t in range(start, stop):
            row = out_rows[t] if gathered else t
            x = I[2] + (row + private * I[10]) * stride
            residual = I[4] + (row + private * I[11]) * stride if I[4] >= 0 else -1
            out = scratch if quantized else f
            o = 0 if quantized else I[6] + (t + private) * stride
            if layer:
                layer_norm_row(f, x, stride, residual, weight, I[5], I[12], out, o, I[8], eps)
            else:
                normalize_row(f, x, stride, residual, weight, I[5], out, o, I[8], eps)
            if quantized:
                nb = I[8] // 32
                target = panel_row(I[6], t + private * PANEL, nb, record)
                quantize_blocks(scratch, 0, 0, nb, E[QUANTS], target)

    return norm


def make_head_norm(head_dim: int) -> Any:
    """Opcode: RMS norm of single heads in place. I: 2 x, 3 row stride, 4 heads, 5 weight in CONSTANTS, 6 eps (bits).

    Order: lane i takes columns i, i + 16, ... of a head, the lanes by the fixed tree.
    """

    @kernel
    def head_norm(I, E, tid, nth):
        f = f32_ptr(E[FLOATS])
        weight = f32_ptr(E[CONSTANTS])
        eps = f32_of_bits(I[6])
        start, stop = split_rows(E, E[N_ROWS], tid, nth)
        first, last = (0, I[4]) if E[N_ROWS] > 1 else split(I[4], tid, nth)
        for t in range(start, stop):
            for head in range(first, last):
                x = I[2] + t * I[3] + head * head_dim
                squares = splat_zero()
                for i in range(0, head_dim, 16):
                    v = load_f32(f, x + i)
                    squares = fma(v, v, squares)
                scale = splat_f32(f32(1.0) / np.sqrt(sum_lanes(squares) / f32(head_dim) + eps))
                for i in range(0, head_dim, 16):
                    store_f32(f, x + i, load_f32(f, x + i) * scale * load_f32(weight, I[5] + i))

    return head_norm
