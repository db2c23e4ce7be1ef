"""Gated feed-forward activations."""

from __future__ import annotations

from typing import Any

from modelc.kernels.activations import make_quantize_blocks, panel_row
from modelc.kernels.elementary import ACTIVATIONS
from modelc.kernels.env import FLOATS, N_ROWS, QUANTS, RECORD_BYTES, SCRATCH, SCRATCH_FLOATS
from modelc.kernels.jit import kernel
from modelc.kernels.pointers import f32_ptr
from modelc.kernels.simd import load_f32, store_f32
from modelc.kernels.split import split_groups


def make_gate_row(activation: str) -> Any:
    """gate_row(f, gate, up, out, o, first, last): activation(gate) * up for groups first .. last of 16 columns."""
    activate = ACTIVATIONS[activation]

    @kernel
    def gate_row(f, gate, up, out, o, first, last):
        for i in range(16 * first, 16 * last, 16):
            store_f32(out, o + i, activate(load_f32(f, gate + i)) * load_f32(f, up + i))

    return gate_row


def make_gate(activation: str) -> Any:
    """Opcode: out = activation(gate) * up. Threads share the columns, as in the matmul before: each has them near.

    I: 2 gate, 3 up, 4 row stride of both, 5 groups of 16 columns, 6 out, 7 its row stride.
    """
    gate_row = make_gate_row(activation)

    @kernel
    def gate(I, E, tid, nth):
        f = f32_ptr(E[FLOATS])
        first, last = split_groups(I[5], tid, nth)
        for t in range(E[N_ROWS]):
            gate_row(f, I[2] + t * I[4], I[3] + t * I[4], f, I[6] + t * I[7], first, last)

    return gate


def make_gate_quantize(activation: str, form: str) -> Any:
    """Opcode: gate and `quantize` row by row, while the row is in the nearest cache. I[6] is a byte in QUANTS."""
    record = RECORD_BYTES[form]
    gate_row = make_gate_row(activation)
    quantize_blocks = make_quantize_blocks(form)

    @kernel
    def gate_quantize(I, E, tid, nth):
        f = f32_ptr(E[FLOATS])
        h = f32_ptr(E[SCRATCH] + tid * E[SCRATCH_FLOATS] * 4)
        first, last = split_groups(I[5], tid, nth)
        for t in range(E[N_ROWS]):
            gate_row(f, I[2] + t * I[4], I[3] + t * I[4], h, 0, first, last)
            target = panel_row(I[6], t, I[5] // 2, record)
            quantize_blocks(h, 0, first // 2, last // 2, E[QUANTS], target)

    return gate_quantize
