"""Quantized activations: the record that int8 weights are multiplied with, and the opcode that writes it.

Eight rows (a panel) are interleaved by block, so that a tile of 8 tokens reads one run of memory:

    record (row, 32 columns), `a8`, 48 bytes               `a16`, 80 bytes
      0  32 int8: q = round(x * 127 / max|x|)                 0  32 int8: high byte of q (q = 256 * high + low)
     32  float32: d = max|x| / 127                           32  32 int8: low byte, signed
     36  float32: d * (sum of q)                             64  as in a8, from d on (127 -> 32639)
     40  int32: sum of the first 16 q
     44  int32: sum of all 32 q

Row t, block b of a buffer with nb blocks a row is at ((t // 8) * nb + b) * 8 * record + (t % 8) * record.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from modelc.kernels.elementary import ROUND, ROUND_BITS
from modelc.kernels.env import FLOATS, N_OUT, N_ROWS, PANEL, QUANTS, RECORD_BYTES
from modelc.kernels.jit import kernel
from modelc.kernels.pointers import f32_ptr, i32_ptr, u8_ptr
from modelc.kernels.simd import (
    bits_of,
    from_bits,
    load_f32,
    max_lanes,
    maximum,
    splat_f32,
    splat_i32,
    store_i8,
    sum_lanes_i32,
)
from modelc.kernels.split import private_row, split_rows

f32 = np.float32
i32 = np.int32

SCALE_AT = {"a8": 32, "a16": 64}  # where d is in a record


@kernel
def panel_row(q, row, nb, record):
    """Byte offset of the first record of `row` in a quantized buffer at byte `q` with `nb` blocks a row."""
    return q + (row // PANEL) * nb * PANEL * record + (row % PANEL) * record


def make_quantize(activation: str) -> Any:
    """Opcode: FLOATS (rows, cols) f32 -> QUANTS records.

    I: 2 source, 3 its row stride, 4 cols / 32, 5 target byte, 6 1 = the source is private in one-row batches, 7 1 =
        only the rows whose logits are wanted (already gathered).
    """
    record = RECORD_BYTES[activation]
    scale_at = SCALE_AT[activation]
    two_planes = activation == "a16"
    q_max = 32639.0 if two_planes else 127.0  # 127 * 256 + 127: both bytes stay in int8

    @kernel
    def quantize(I, E, tid, nth):
        x = f32_ptr(E[FLOATS])
        out = u8_ptr(E[QUANTS])
        nb = I[4]
        magic = splat_f32(ROUND)
        magic_bits = splat_i32(ROUND_BITS)
        magnitude = splat_i32(i32(0x7FFFFFFF))
        start, stop = split_rows(E, E[N_OUT] if I[7] and E[N_ROWS] > 1 else E[N_ROWS], tid, nth)
        private = private_row(E, tid)
        for t in range(start, stop):
            source = I[2] + (t + private * I[6]) * I[3]
            r = panel_row(I[5], t + private * PANEL, nb, record)
            for b in range(nb):
                x0 = load_f32(x, source + b * 32)
                x1 = load_f32(x, source + b * 32 + 16)
                largest = max_lanes(maximum(from_bits(bits_of(x0) & magnitude), from_bits(bits_of(x1) & magnitude)))
                d = largest / f32(q_max)
                inverse = f32(0.0)
                if largest > f32(0.0):
                    inverse = f32(q_max) / largest
                q0 = bits_of(x0 * splat_f32(inverse) + magic) - magic_bits
                q1 = bits_of(x1 * splat_f32(inverse) + magic) - magic_bits
                if two_planes:
                    eight = splat_i32(i32(8))
                    high0 = ((q0 + splat_i32(i32(0x8080))) >> eight) - splat_i32(i32(0x80))
                    high1 = ((q1 + splat_i32(i32(0x8080))) >> eight) - splat_i32(i32(0x80))
                    store_i8(out, r, high0)
                    store_i8(out, r + 16, high1)
                    store_i8(out, r + 32, q0 - (high0 << eight))
                    store_i8(out, r + 48, q1 - (high1 << eight))
                else:
                    store_i8(out, r, q0)
                    store_i8(out, r + 16, q1)
                first = sum_lanes_i32(q0)
                total = i32(first + sum_lanes_i32(q1))
                floats = f32_ptr(E[QUANTS] + r + scale_at)
                ints = i32_ptr(E[QUANTS] + r + scale_at + 8)
                floats[0] = d
                floats[1] = d * f32(total)
                ints[0] = first
                ints[1] = total
                r += PANEL * record

    return quantize
