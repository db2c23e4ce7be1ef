"""Type q4_0: 32 columns of 4-bit codes and one scale; value = d * (code - 8).

block (18 bytes)                               lanes, record of 32 columns (288 bytes)
  0   2  d      f16                              0   32  d      16 x f16
  2  16  codes  columns 0-15 in the low         32  256  codes  NIB
                nibbles, 16-31 in the high
"""

from __future__ import annotations

import numpy as np

from modelc.layout.fitting import codes_of_32, extremes_of_32, fit_signed
from modelc.layout.floats import NOTHING, float_of_half, store_floats
from modelc.layout.loop_compiler import inlined
from modelc.layout.planes import load_halves, load_nib, store_halves, store_nib
from modelc.layout.rounding import furthest, half_of_float, inverse_of
from modelc.layout.words import Buffer, load_u16, store_u16


@inlined
def to_lane(blocks: Buffer, block: int, lanes: Buffer, record: int, lane: int) -> None:
    """See `loops`."""
    store_u16(lanes, record + 2 * lane, load_u16(blocks, block))
    store_nib(lanes, record + 32, lane, load_halves(blocks, block + 2))


@inlined
def from_lane(lanes: Buffer, record: int, lane: int, blocks: Buffer, block: int) -> None:
    """See `loops`."""
    store_u16(blocks, block, load_u16(lanes, record + 2 * lane))
    store_halves(blocks, block + 2, load_nib(lanes, record + 32, lane))


@inlined
def dequantize(blocks: Buffer, block: int, values: Buffer, at: int) -> None:
    """See `loops`."""
    d = float_of_half(load_u16(blocks, block))
    store_floats(values, at, load_halves(blocks, block + 2), 8, d, NOTHING)


@inlined
def quantize(values: Buffer, at: int, blocks: Buffer, block: int) -> None:
    """See `loops`."""
    lowest, highest = extremes_of_32(values, at)
    scale = half_of_float(fit_signed(values, at, 32, furthest(lowest, highest), -8, 7))
    store_u16(blocks, block, scale)
    store_halves(blocks, block + 2, codes_of_32(values, at, np.float32(0), inverse_of(float_of_half(scale)), -8, 7, 8))
