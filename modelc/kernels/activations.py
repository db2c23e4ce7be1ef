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
from modelc.kernels.jit import inlined, kernel
from modelc.kernels.lanes import maximum_i32
from modelc.kernels.pointers import f32_ptr, i32_ptr, u8_ptr
from modelc.kernels.simd import (
    bits_of,
    even_quarters,
    from_bits,
    high_halves,
    lane,
    load_f32,
    low_halves,
    odd_quarters,
    splat_f32,
    splat_first_half,
    splat_i32,
    splat_second_half,
    store_i8,
    swap_fours_of,
    swap_pairs_of,
    swap_twos_of,
    zero_below,
)
from modelc.kernels.split import private_row, split_rows

f32 = np.float32
i32 = np.int32

SCALE_AT = {"a8": 32, "a16": 64}  # where d is in a record


@kernel
def panel_row(q, row, nb, record):
    """Byte offset of the first record of `row` in a quantized buffer at byte `q` with `nb` blocks a row."""
    return q + (row // PANEL) * nb * PANEL * record + (row % PANEL) * record


@inlined
def largest_of_two(x, y):
    """The largest int32 of x in lanes 0 to 7, of y in lanes 8 to 15."""
    both = maximum_i32(low_halves(x, y), high_halves(x, y))
    both = maximum_i32(both, swap_fours_of(both, both))
    both = maximum_i32(both, swap_twos_of(both, both))
    return maximum_i32(both, swap_pairs_of(both, both))


@inlined
def sums_of_four(a, b, c, d):
    """The exact sums of four vectors, each in four lanes."""
    ab = low_halves(a, b) + high_halves(a, b)
    cd = low_halves(c, d) + high_halves(c, d)
    all_four = even_quarters(ab, cd) + odd_quarters(ab, cd)
    all_four = all_four + swap_twos_of(all_four, all_four)
    return all_four + swap_pairs_of(all_four, all_four)


@inlined
def store_sums(address, d, first, second):
    """The end of a record: scale, scaled sum, sum of the first 16 codes, sum of all."""
    floats = f32_ptr(address)
    ints = i32_ptr(address + 8)
    total = i32(first + second)
    floats[0] = d
    floats[1] = d * f32(total)
    ints[0] = first
    ints[1] = total


def make_quantize_blocks(activation: str) -> Any:
    """quantize_blocks(x, source, first, stop, quants, target): blocks first .. stop of the row x[source ...].

    `quants` is the address of QUANTS, `target` the byte of the row's first record in it.
    """
    record = RECORD_BYTES[activation]
    scale_at = SCALE_AT[activation]
    two_planes = activation == "a16"
    q_max = 32639.0 if two_planes else 127.0  # 127 * 256 + 127: both bytes stay in int8

    @inlined
    def store_codes(out, r, low, high):
        """32 codes into one plane of bytes, or into two."""
        if two_planes:
            eight = splat_i32(i32(8))
            plane0 = ((low + splat_i32(i32(0x8080))) >> eight) - splat_i32(i32(0x80))
            plane1 = ((high + splat_i32(i32(0x8080))) >> eight) - splat_i32(i32(0x80))
            store_i8(out, r, plane0)
            store_i8(out, r + 16, plane1)
            store_i8(out, r + 32, low - (plane0 << eight))
            store_i8(out, r + 48, high - (plane1 << eight))
        else:
            store_i8(out, r, low)
            store_i8(out, r + 16, high)

    @kernel
    def quantize_blocks(x, source, first, stop, quants, target):
        out = u8_ptr(quants)
        magic = splat_f32(ROUND)
        magic_bits = splat_i32(ROUND_BITS)
        magnitude = splat_i32(i32(0x7FFFFFFF))
        for b in range(first, stop, 2):
            second = min(b + 1, stop - 1)  # an odd last block is done twice
            x0 = load_f32(x, source + b * 32)
            x1 = load_f32(x, source + b * 32 + 16)
            x2 = load_f32(x, source + second * 32)
            x3 = load_f32(x, source + second * 32 + 16)
            # Bits of floats that are not negative compare as the floats do, and those of NaN are above all: it is kept.
            largest = from_bits(
                largest_of_two(
                    maximum_i32(bits_of(x0) & magnitude, bits_of(x1) & magnitude),
                    maximum_i32(bits_of(x2) & magnitude, bits_of(x3) & magnitude),
                )
            )
            d = largest / splat_f32(f32(q_max))
            inverse = zero_below(largest, splat_f32(f32(1e-45)), splat_f32(f32(q_max)) / largest)
            inverse0 = splat_first_half(inverse, inverse)
            inverse1 = splat_second_half(inverse, inverse)
            q0 = bits_of(x0 * inverse0 + magic) - magic_bits
            q1 = bits_of(x1 * inverse0 + magic) - magic_bits
            q2 = bits_of(x2 * inverse1 + magic) - magic_bits
            q3 = bits_of(x3 * inverse1 + magic) - magic_bits
            sums = sums_of_four(q0, q1, q2, q3)
            r0 = target + b * PANEL * record
            r1 = target + second * PANEL * record
            store_codes(out, r0, q0, q1)
            store_codes(out, r1, q2, q3)
            store_sums(quants + r0 + scale_at, lane(d, 0), lane(sums, 0), lane(sums, 4))
            store_sums(quants + r1 + scale_at, lane(d, 8), lane(sums, 8), lane(sums, 12))

    return quantize_blocks


def make_quantize(activation: str) -> Any:
    """Opcode: FLOATS (rows, cols) f32 -> QUANTS records.

    I: 2 source, 3 its row stride, 4 cols / 32, 5 target byte, 6 1 = the source is private in one-row batches, 7 1 =
    only the rows whose logits are wanted (already gathered).
    """
    record = RECORD_BYTES[activation]
    quantize_blocks = make_quantize_blocks(activation)

    @kernel
    def quantize(I, E, tid, nth):
        x = f32_ptr(E[FLOATS])
        nb = I[4]
        start, stop = split_rows(E, E[N_OUT] if I[7] and E[N_ROWS] > 1 else E[N_ROWS], tid, nth)
        private = private_row(E, tid)
        for t in range(start, stop):
            target = panel_row(I[5], t + private * PANEL, nb, record)
            quantize_blocks(x, I[2] + (t + private * I[6]) * I[3], 0, nb, E[QUANTS], target)

    return quantize
