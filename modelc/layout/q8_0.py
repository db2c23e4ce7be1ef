"""Type q8_0: 32 columns of signed bytes and one scale; value = d * q.

    block (34 bytes)                               lanes, record of 32 columns (544 bytes)
      0   2  d  f16                                  0   32  d      16 x f16
      2  32  q  i8, by column                       32  512  q+128  8 x 64 bytes, a word of every row each

In lanes the byte is q + 128, that is q with its sign bit flipped: int8 dot products want one unsigned factor.
"""

from __future__ import annotations

import numpy as np

from modelc.layout.fitting import codes_of_32, extremes_of_32, fit_signed
from modelc.layout.floats import NOTHING, float_of_half, store_floats
from modelc.layout.loop_compiler import inlined
from modelc.layout.planes import BYTES, load_fields
from modelc.layout.rounding import furthest, half_of_float, inverse_of
from modelc.layout.words import Buffer, load_u16, load_u32, store_u16, store_u32

SIGNS = 0x80808080


@inlined
def to_lane(blocks: Buffer, block: int, lanes: Buffer, record: int, lane: int) -> None:
    """See `loops`."""
    store_u16(lanes, record + 2 * lane, load_u16(blocks, block))
    for j in range(8):
        store_u32(lanes, record + 32 + 64 * j + 4 * lane, load_u32(blocks, block + 2 + 4 * j) ^ SIGNS)


@inlined
def from_lane(lanes: Buffer, record: int, lane: int, blocks: Buffer, block: int) -> None:
    """See `loops`."""
    store_u16(blocks, block, load_u16(lanes, record + 2 * lane))
    for j in range(8):
        store_u32(blocks, block + 2 + 4 * j, load_u32(lanes, record + 32 + 64 * j + 4 * lane) ^ SIGNS)


@inlined
def dequantize(blocks: Buffer, block: int, values: Buffer, at: int) -> None:
    """See `loops`."""
    d = float_of_half(load_u16(blocks, block))
    store_floats(values, at, load_fields(blocks, block + 2, 0, BYTES), 0, d, NOTHING)


@inlined
def quantize(values: Buffer, at: int, blocks: Buffer, block: int) -> None:
    """See `loops`."""
    lowest, highest = extremes_of_32(values, at)
    scale = half_of_float(fit_signed(values, at, 32, furthest(lowest, highest), -127, 127))
    codes = codes_of_32(values, at, np.float32(0), inverse_of(float_of_half(scale)), -127, 127, 0)
    store_u16(blocks, block, scale)
    for j in range(8):
        store_u32(blocks, block + 2 + 4 * j, codes[j])
