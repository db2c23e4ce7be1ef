"""Type q5_0: 32 columns of 5-bit codes and one scale; value = d * (code - 16).

block (22 bytes)                               lanes, record of 32 columns (352 bytes)
  0   2  d     f16                               0   32  d     16 x f16
  2   4  high  bit 4 of column c in bit c       32  256  low   NIB
  6  16  low   columns 0-15 in the low         288   64  high  BIT
               nibbles, 16-31 in the high
"""

from __future__ import annotations

import numpy as np

from modelc.layout.fitting import codes_of_32, extremes_of_32, fit_signed
from modelc.layout.floats import NOTHING, float_of_half, store_floats
from modelc.layout.loop_compiler import inlined
from modelc.layout.planes import (
    BITS,
    NIBBLES,
    gather_bits,
    join,
    load_bit,
    load_halves,
    load_nib,
    part,
    spread_bits,
    store_bit,
    store_halves,
    store_nib,
)
from modelc.layout.rounding import furthest, half_of_float, inverse_of
from modelc.layout.words import Buffer, load_u16, load_u32, store_u16, store_u32


@inlined
def to_lane(blocks: Buffer, block: int, lanes: Buffer, record: int, lane: int) -> None:
    """See `loops`."""
    store_u16(lanes, record + 2 * lane, load_u16(blocks, block))
    store_nib(lanes, record + 32, lane, load_halves(blocks, block + 6))
    store_bit(lanes, record + 288, lane, spread_bits(load_u32(blocks, block + 2)))


@inlined
def from_lane(lanes: Buffer, record: int, lane: int, blocks: Buffer, block: int) -> None:
    """See `loops`."""
    store_u16(blocks, block, load_u16(lanes, record + 2 * lane))
    store_u32(blocks, block + 2, gather_bits(load_bit(lanes, record + 288, lane)))
    store_halves(blocks, block + 6, load_nib(lanes, record + 32, lane))


@inlined
def dequantize(blocks: Buffer, block: int, values: Buffer, at: int) -> None:
    """See `loops`."""
    d = float_of_half(load_u16(blocks, block))
    codes = join(load_halves(blocks, block + 6), spread_bits(load_u32(blocks, block + 2)), 4)
    store_floats(values, at, codes, 16, d, NOTHING)


@inlined
def quantize(values: Buffer, at: int, blocks: Buffer, block: int) -> None:
    """See `loops`."""
    lowest, highest = extremes_of_32(values, at)
    scale = half_of_float(fit_signed(values, at, 32, furthest(lowest, highest), -16, 15))
    codes = codes_of_32(values, at, np.float32(0), inverse_of(float_of_half(scale)), -16, 15, 16)
    store_u16(blocks, block, scale)
    store_u32(blocks, block + 2, gather_bits(part(codes, 4, BITS)))
    store_halves(blocks, block + 6, part(codes, 0, NIBBLES))
