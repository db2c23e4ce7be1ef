"""Type q4_k: 256 columns of 4-bit codes; each 32 have a scale and a minimum; value = d * scale * code - dmin * minimum.

block (144 bytes)                              lanes, record of 256 columns (2368 bytes)
  0    2  d       f16                            0    32  d         16 x f16
  2    2  dmin    f16                           32    32  dmin      16 x f16
  4   12  scales  see `six_bit`                 64   128  scales    8 x 16 x u8
 16  128  codes   32 bytes for each two        192   128  minimums  8 x 16 x u8
                  blocks of 32 columns: the    320  2048  codes     8 x NIB
                  even one in the low nibbles,
                  the odd one in the high
"""

from __future__ import annotations

import numpy as np

from modelc.layout.fitting import codes_of_32
from modelc.layout.floats import float_of_half, store_floats
from modelc.layout.loop_compiler import inlined
from modelc.layout.planes import NIB_BYTES, NIBBLES, clear, load_fields, load_nib, or_fields, store_nib
from modelc.layout.rounding import inverse_of
from modelc.layout.six_bit import fit_scales, load_minimum, load_scale, scales_from_lane, scales_to_lane
from modelc.layout.words import Buffer, load_u16, store_u16


@inlined
def to_lane(blocks: Buffer, block: int, lanes: Buffer, record: int, lane: int) -> None:
    """See `loops`."""
    store_u16(lanes, record + 2 * lane, load_u16(blocks, block))
    store_u16(lanes, record + 32 + 2 * lane, load_u16(blocks, block + 2))
    scales_to_lane(blocks, block + 4, lanes, record + 64, lane)
    for b in range(8):
        codes = load_fields(blocks, block + 16 + 32 * (b // 2), 4 * (b % 2), NIBBLES)
        store_nib(lanes, record + 320 + NIB_BYTES * b, lane, codes)


@inlined
def from_lane(lanes: Buffer, record: int, lane: int, blocks: Buffer, block: int) -> None:
    """See `loops`."""
    store_u16(blocks, block, load_u16(lanes, record + 2 * lane))
    store_u16(blocks, block + 2, load_u16(lanes, record + 32 + 2 * lane))
    scales_from_lane(lanes, record + 64, lane, blocks, block + 4)
    for b in range(8):
        codes = load_nib(lanes, record + 320 + NIB_BYTES * b, lane)
        or_fields(blocks, block + 16 + 32 * (b // 2), 4 * (b % 2), codes)


@inlined
def dequantize(blocks: Buffer, block: int, values: Buffer, at: int) -> None:
    """See `loops`."""
    d, dmin = float_of_half(load_u16(blocks, block)), float_of_half(load_u16(blocks, block + 2))
    for b in range(8):
        scale = d * np.float32(load_scale(blocks, block + 4, b))
        minimum = dmin * np.float32(load_minimum(blocks, block + 4, b))
        codes = load_fields(blocks, block + 16 + 32 * (b // 2), 4 * (b % 2), NIBBLES)
        store_floats(values, at + 128 * b, codes, 0, scale, -minimum)


@inlined
def quantize(values: Buffer, at: int, blocks: Buffer, block: int) -> None:
    """See `loops`."""
    fit_scales(values, at, blocks, block, block + 16, 15)
    d, dmin = float_of_half(load_u16(blocks, block)), float_of_half(load_u16(blocks, block + 2))
    clear(blocks, block + 16, 32)
    for b in range(8):
        inverse = inverse_of(d * np.float32(load_scale(blocks, block + 4, b)))
        minimum = -dmin * np.float32(load_minimum(blocks, block + 4, b))
        codes = codes_of_32(values, at + 128 * b, minimum, inverse, 0, 15, 0)
        or_fields(blocks, block + 16 + 32 * (b // 2), 4 * (b % 2), codes)
