"""Type q3_k: 256 columns of 3-bit codes; each 16 have a 6-bit scale; value = d * (scale - 32) * (code - 4).

block (110 bytes)                              lanes, record of 256 columns (1824 bytes)
  0  32  high    column 32b+i in bit b           0    32  d       16 x f16
                 of byte i                      32   256  scales  16 x 16 x i8, scale - 32
 32  64  low     block b of 32 columns: in     288  1536  codes   8 x (low TWO, high BIT)
                 the 32 bytes at 32 (b / 4),
                 bits 2 (b % 4)
 96  12  scales  bits 0-3 of scale s in nibble s / 8
                 of byte s % 8, bits 4-5 in bits
                 2 (s / 4) of byte 8 + s % 4
108   2  d       f16
"""

from __future__ import annotations

import numpy as np

from modelc.layout.fitting import codes_of_16, extremes_of_16, fit_signed, try_scales
from modelc.layout.floats import NOTHING, float_of_half, store_floats
from modelc.layout.loop_compiler import inlined
from modelc.layout.planes import (
    BIT_BYTES,
    BITS,
    PAIRS,
    TWO_BYTES,
    clear,
    join,
    load_bit,
    load_fields,
    load_two,
    or_fields,
    part,
    store_bit,
    store_two,
)
from modelc.layout.rounding import furthest, half_of_float, inverse_of, load_float, nearest_code, store_float
from modelc.layout.words import Buffer, load_u8, load_u16, or_u8, store_u8, store_u16

BLOCK_LANES_BYTES = TWO_BYTES + BIT_BYTES


@inlined
def to_lane(blocks: Buffer, block: int, lanes: Buffer, record: int, lane: int) -> None:
    """See `loops`."""
    store_u16(lanes, record + 2 * lane, load_u16(blocks, block + 108))
    for s in range(16):
        store_u8(lanes, record + 32 + 16 * s + lane, _load_scale(blocks, block + 96, s))
    for b in range(8):
        planes = record + 288 + BLOCK_LANES_BYTES * b
        store_two(lanes, planes, lane, load_fields(blocks, block + 32 + 32 * (b // 4), 2 * (b % 4), PAIRS))
        store_bit(lanes, planes + TWO_BYTES, lane, load_fields(blocks, block, b, BITS))


@inlined
def from_lane(lanes: Buffer, record: int, lane: int, blocks: Buffer, block: int) -> None:
    """See `loops`."""
    store_u16(blocks, block + 108, load_u16(lanes, record + 2 * lane))
    for s in range(16):
        scale = load_u8(lanes, record + 32 + 16 * s + lane) + 32 & 63
        _or_scale(blocks, block + 96, s, scale)
    for b in range(8):
        planes = record + 288 + BLOCK_LANES_BYTES * b
        or_fields(blocks, block + 32 + 32 * (b // 4), 2 * (b % 4), load_two(lanes, planes, lane))
        or_fields(blocks, block, b, load_bit(lanes, planes + TWO_BYTES, lane))


@inlined
def dequantize(blocks: Buffer, block: int, values: Buffer, at: int) -> None:
    """See `loops`."""
    d = float_of_half(load_u16(blocks, block + 108))
    for b in range(8):
        low = load_fields(blocks, block + 32 + 32 * (b // 4), 2 * (b % 4), PAIRS)
        codes = join(low, load_fields(blocks, block, b, BITS), 2)
        first = d * np.float32(_load_scale(blocks, block + 96, 2 * b))
        second = d * np.float32(_load_scale(blocks, block + 96, 2 * b + 1))
        store_floats(values, at + 128 * b, codes[:4], 4, first, NOTHING)
        store_floats(values, at + 128 * b + 64, codes[4:], 4, second, NOTHING)


@inlined
def _load_scale(blocks: Buffer, at: int, s: int) -> int:
    low = load_u8(blocks, at + s % 8) >> 4 * (s // 8) & 15
    high = load_u8(blocks, at + 8 + s % 4) >> 2 * (s // 4) & 3
    return (low | high << 4) - 32


@inlined
def quantize(values: Buffer, at: int, blocks: Buffer, block: int) -> None:
    """See `loops`."""
    lowest, highest = np.float32(0), np.float32(0)
    for s in range(16):
        least, most = extremes_of_16(values, at + 64 * s)
        scale = fit_signed(values, at + 64 * s, 16, furthest(least, most), -4, 3)
        store_float(blocks, block + 32 + 4 * s, scale)
        lowest, highest = min(lowest, scale), max(highest, scale)
    d = half_of_float(furthest(lowest, highest) * np.float32(-1 / 32))
    unit = float_of_half(d)
    store_u16(blocks, block + 108, d)
    clear(blocks, block + 96, 3)
    for s in range(16):
        near = nearest_code(load_float(blocks, block + 32 + 4 * s) * inverse_of(unit), -24, 23)
        k, _ = try_scales(values, at + 64 * s, 16, np.float32(0), unit * np.float32(near - 8), unit, -4, 3)
        _or_scale(blocks, block + 96, s, near + 24 + int(k))
    clear(blocks, block, 24)
    for b in range(8):
        first = inverse_of(unit * np.float32(_load_scale(blocks, block + 96, 2 * b)))
        second = inverse_of(unit * np.float32(_load_scale(blocks, block + 96, 2 * b + 1)))
        low_half = codes_of_16(values, at + 128 * b, np.float32(0), first, -4, 3, 4)
        codes = low_half + codes_of_16(values, at + 128 * b + 64, np.float32(0), second, -4, 3, 4)
        or_fields(blocks, block + 32 + 32 * (b // 4), 2 * (b % 4), part(codes, 0, PAIRS))
        or_fields(blocks, block, b, part(codes, 2, BITS))


@inlined
def _or_scale(blocks: Buffer, at: int, s: int, scale: int) -> None:
    """Puts a scale, 32 added, into 12 bytes that hold zeros there."""
    or_u8(blocks, at + s % 8, (scale & 15) << 4 * (s // 8))
    or_u8(blocks, at + 8 + s % 4, scale >> 4 << 2 * (s // 4))
