"""One time step of LSTM cells: what is element by element; the products are `array_gemm`'s.

Gates have ONNX's order: input, output, forget, cell.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from modelc.kernels.jit import inlined, kernel
from modelc.kernels.lanes import load_first, store_first
from modelc.kernels.pointers import f32_of_bits, f32_ptr
from modelc.kernels.simd import maximum, minimum, splat_f32
from modelc.kernels.special_functions import sigmoid, tanh
from modelc.kernels.split import split

f32 = np.float32


@inlined
def _clipped(value, limit):
    return minimum(maximum(value, splat_f32(-limit)), splat_f32(limit))


def make_array_lstm_cell() -> Any:
    """Opcode: the cell's new state and output, with sigmoid and tanh.

    I: 2 gates (batch, 4 hidden), 3 c (batch, hidden), changed, 4 h (batch, hidden), changed, 5 y (batch, hidden)
    (addresses), 6 peepholes (3 hidden: input, output, forget) or 0, 7 batch, 8 hidden, 9 clip (float32 bits; inf for
    none), 10 1 = forget is 1 - input.
    """

    @kernel
    def array_lstm_cell(I, E, tid, nth):
        gates = f32_ptr(I[2])
        c = f32_ptr(I[3])
        h = f32_ptr(I[4])
        y = f32_ptr(I[5])
        peepholes = f32_ptr(I[6])
        hidden = I[8]
        limit = f32_of_bits(I[9])
        clips = limit < f32(np.inf)
        chunks = (hidden + 15) // 16
        first, stop = split(I[7] * chunks, tid, nth)
        for unit in range(first, stop):
            row, j = unit // chunks, unit % chunks * 16
            left = min(hidden - j, 16)
            g = row * 4 * hidden + j
            at = row * hidden + j
            old = load_first(c, at, left)
            gate_i = load_first(gates, g, left)
            gate_o = load_first(gates, g + hidden, left)
            gate_f = load_first(gates, g + 2 * hidden, left)
            gate_c = load_first(gates, g + 3 * hidden, left)
            if I[6] != 0:
                gate_i = gate_i + load_first(peepholes, j, left) * old
                gate_f = gate_f + load_first(peepholes, 2 * hidden + j, left) * old
            if clips:
                gate_i, gate_f, gate_c = _clipped(gate_i, limit), _clipped(gate_f, limit), _clipped(gate_c, limit)
            opened = sigmoid(gate_i)
            kept = splat_f32(f32(1.0)) - opened if I[10] != 0 else sigmoid(gate_f)
            new = kept * old + opened * tanh(gate_c)
            if I[6] != 0:
                gate_o = gate_o + load_first(peepholes, hidden + j, left) * new
            if clips:
                gate_o = _clipped(gate_o, limit)
            out = sigmoid(gate_o) * tanh(new)
            store_first(c, at, new, left)
            store_first(h, at, out, left)
            store_first(y, at, out, left)

    return array_lstm_cell
