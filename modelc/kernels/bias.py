"""Bias vectors, with the activation that follows them."""

from __future__ import annotations

from typing import Any

from modelc.kernels.elementary import ACTIVATIONS
from modelc.kernels.env import CONSTANTS, FLOATS, N_OUT, N_ROWS
from modelc.kernels.jit import kernel
from modelc.kernels.pointers import f32_ptr
from modelc.kernels.simd import load_f32, store_f32
from modelc.kernels.split import split_groups


def make_bias(activation: str) -> Any:
    """Opcode: y[t, c] = activation(y[t, c] + b[c]) in place, y (rows, cols) f32, b (cols,) f32.

    I: 2 y, 3 its row stride, 4 b in CONSTANTS, padded with zeros, 5 groups of 16 columns, 6 1 = only the rows whose
        logits are wanted.

    Threads share the columns as `matmul` does, so that each finds what it has just written there.
    """
    function = ACTIVATIONS[activation]

    @kernel
    def bias(I, E, tid, nth):
        f = f32_ptr(E[FLOATS])
        b = f32_ptr(E[CONSTANTS])
        n = E[N_OUT] if I[6] and E[N_ROWS] > 1 else E[N_ROWS]
        start, stop = split_groups(I[5], tid, nth)
        for t in range(n):
            y = I[2] + t * I[3]
            for c in range(16 * start, 16 * stop, 16):
                store_f32(f, y + c, function(load_f32(f, y + c) + load_f32(b, I[4] + c)))

    return bias
