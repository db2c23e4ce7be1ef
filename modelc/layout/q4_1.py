"""Type q4_1: 32 columns of 4-bit codes, a scale and a minimum; value = d * code + m.

block (20 bytes)                               lanes, record of 32 columns (320 bytes)
  0   2  d      f16                              0   32  d      16 x f16
  2   2  m      f16                             32   32  m      16 x f16
  4  16  codes  columns 0-15 in the low         64  256  codes  NIB
                nibbles, 16-31 in the high
"""

from __future__ import annotations

import numpy as np

from modelc.layout.fitting import codes_of_32, extremes_of_32, fit_above
from modelc.layout.floats import float_of_half, store_floats
from modelc.layout.loop_compiler import inlined
from modelc.layout.planes import load_halves, load_nib, store_halves, store_nib
from modelc.layout.rounding import MAX_FLOAT16, half_of_float, inverse_of
from modelc.layout.words import Buffer, load_u16, store_u16


@inlined
def to_lane(blocks: Buffer, block: int, lanes: Buffer, record: int, lane: int) -> None:
    """See `loops`."""
    store_u16(lanes, record + 2 * lane, load_u16(blocks, block))
    store_u16(lanes, record + 32 + 2 * lane, load_u16(blocks, block + 2))
    store_nib(lanes, record + 64, lane, load_halves(blocks, block + 4))


@inlined
def from_lane(lanes: Buffer, record: int, lane: int, blocks: Buffer, block: int) -> None:
    """See `loops`."""
    store_u16(blocks, block, load_u16(lanes, record + 2 * lane))
    store_u16(blocks, block + 2, load_u16(lanes, record + 32 + 2 * lane))
    store_halves(blocks, block + 4, load_nib(lanes, record + 64, lane))


@inlined
def dequantize(blocks: Buffer, block: int, values: Buffer, at: int) -> None:
    """See `loops`."""
    d, m = float_of_half(load_u16(blocks, block)), float_of_half(load_u16(blocks, block + 2))
    store_floats(values, at, load_halves(blocks, block + 4), 0, d, m)


@inlined
def quantize(values: Buffer, at: int, blocks: Buffer, block: int) -> None:
    """See `loops`."""
    lowest, highest = extremes_of_32(values, at)
    scale, minimum = fit_above(values, at, 32, lowest, highest, 15, np.float32(MAX_FLOAT16))
    d, m = half_of_float(scale), half_of_float(minimum)
    codes = codes_of_32(values, at, float_of_half(m), inverse_of(float_of_half(d)), 0, 15, 0)
    store_u16(blocks, block, d)
    store_u16(blocks, block + 2, m)
    store_halves(blocks, block + 4, codes)
