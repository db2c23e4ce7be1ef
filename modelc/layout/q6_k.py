"""Type q6_k: 256 columns of 6-bit codes; each 16 have a signed scale; value = d * scale * (code - 32).

block (210 bytes)                              lanes, record of 256 columns (3360 bytes)
  0  128  low     block b of 32 columns: in      0    32  d       16 x f16
                  the 32 bytes at 64 (b / 4)    32   256  scales  16 x 16 x i8
                  + 32 (b % 2), high nibbles   288  3072  codes   8 x (low NIB, high TWO)
                  where b % 4 is 2 or 3
128   64  high    in the 32 bytes at 32 (b / 4),
                  bits 2 (b % 4)
192   16  scales  i8, one for 16 columns
208    2  d       f16
"""

from __future__ import annotations

import numpy as np

from modelc.layout.fitting import codes_of_16, extremes_of_16, fit_signed, try_scales
from modelc.layout.floats import NOTHING, float_of_half, store_floats
from modelc.layout.loop_compiler import inlined
from modelc.layout.planes import (
    NIB_BYTES,
    NIBBLES,
    PAIRS,
    TWO_BYTES,
    clear,
    join,
    load_fields,
    load_nib,
    load_two,
    or_fields,
    part,
    store_nib,
    store_two,
)
from modelc.layout.rounding import furthest, half_of_float, inverse_of, load_float, nearest_code, store_float
from modelc.layout.words import Buffer, load_i8, load_u8, load_u16, store_u8, store_u16

BLOCK_LANES_BYTES = NIB_BYTES + TWO_BYTES


@inlined
def to_lane(blocks: Buffer, block: int, lanes: Buffer, record: int, lane: int) -> None:
    """See `loops`."""
    store_u16(lanes, record + 2 * lane, load_u16(blocks, block + 208))
    for s in range(16):
        store_u8(lanes, record + 32 + 16 * s + lane, load_u8(blocks, block + 192 + s))
    for b in range(8):
        planes = record + 288 + BLOCK_LANES_BYTES * b
        low, high = block + 64 * (b // 4) + 32 * (b % 2), block + 128 + 32 * (b // 4)
        store_nib(lanes, planes, lane, load_fields(blocks, low, 2 * (b & 2), NIBBLES))
        store_two(lanes, planes + NIB_BYTES, lane, load_fields(blocks, high, 2 * (b % 4), PAIRS))


@inlined
def from_lane(lanes: Buffer, record: int, lane: int, blocks: Buffer, block: int) -> None:
    """See `loops`."""
    store_u16(blocks, block + 208, load_u16(lanes, record + 2 * lane))
    for s in range(16):
        store_u8(blocks, block + 192 + s, load_u8(lanes, record + 32 + 16 * s + lane))
    for b in range(8):
        planes = record + 288 + BLOCK_LANES_BYTES * b
        low, high = block + 64 * (b // 4) + 32 * (b % 2), block + 128 + 32 * (b // 4)
        or_fields(blocks, low, 2 * (b & 2), load_nib(lanes, planes, lane))
        or_fields(blocks, high, 2 * (b % 4), load_two(lanes, planes + NIB_BYTES, lane))


@inlined
def dequantize(blocks: Buffer, block: int, values: Buffer, at: int) -> None:
    """See `loops`."""
    d = float_of_half(load_u16(blocks, block + 208))
    for b in range(8):
        low = load_fields(blocks, block + 64 * (b // 4) + 32 * (b % 2), 2 * (b & 2), NIBBLES)
        high = load_fields(blocks, block + 128 + 32 * (b // 4), 2 * (b % 4), PAIRS)
        codes = join(low, high, 4)
        first = d * np.float32(load_i8(blocks, block + 192 + 2 * b))
        second = d * np.float32(load_i8(blocks, block + 193 + 2 * b))
        store_floats(values, at + 128 * b, codes[:4], 32, first, NOTHING)
        store_floats(values, at + 128 * b + 64, codes[4:], 32, second, NOTHING)


@inlined
def quantize(values: Buffer, at: int, blocks: Buffer, block: int) -> None:
    """See `loops`."""
    lowest, highest = np.float32(0), np.float32(0)
    for s in range(16):
        least, most = extremes_of_16(values, at + 64 * s)
        scale = fit_signed(values, at + 64 * s, 16, furthest(least, most), -32, 31)
        store_float(blocks, block + 4 * s, scale)
        lowest, highest = min(lowest, scale), max(highest, scale)
    d = half_of_float(furthest(lowest, highest) * np.float32(-1 / 128))
    store_u16(blocks, block + 208, d)
    unit = float_of_half(d)
    for s in range(16):
        first = nearest_code(load_float(blocks, block + 4 * s) * inverse_of(unit), -120, 119) - 8
        k, _ = try_scales(values, at + 64 * s, 16, np.float32(0), unit * np.float32(first), unit, -32, 31)
        store_u8(blocks, block + 192 + s, first + int(k))
    clear(blocks, block, 48)
    for b in range(8):
        low, high = block + 64 * (b // 4) + 32 * (b % 2), block + 128 + 32 * (b // 4)
        first_inverse = inverse_of(unit * np.float32(load_i8(blocks, block + 192 + 2 * b)))
        second_inverse = inverse_of(unit * np.float32(load_i8(blocks, block + 193 + 2 * b)))
        codes = codes_of_16(values, at + 128 * b, np.float32(0), first_inverse, -32, 31, 32) + codes_of_16(
            values, at + 128 * b + 64, np.float32(0), second_inverse, -32, 31, 32
        )
        or_fields(blocks, low, 2 * (b & 2), part(codes, 0, NIBBLES))
        or_fields(blocks, high, 2 * (b % 4), part(codes, 4, PAIRS))
