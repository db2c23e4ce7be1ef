"""Type q2_k: 256 columns of 2-bit codes; each 16 have a scale and a minimum; value = d * scale * code - dmin * minimum.

block (84 bytes)                               lanes, record of 256 columns (1344 bytes)
  0  16  scales  one byte for 16 columns:        0    32  d       16 x f16
                 scale in the low nibble,       32    32  dmin    16 x f16
                 minimum in the high            64   256  scales  16 x 16 x u8, as in the block
 16  64  codes   block b of 32 columns: in     320  1024  codes   8 x TWO
                 the 32 bytes at 32 (b / 4),
                 bits 2 (b % 4)
 80   2  d       f16
 82   2  dmin    f16
"""

from __future__ import annotations

import numpy as np

from modelc.layout.fitting import codes_of_16, extremes_of_16, fit_above, try_scales
from modelc.layout.floats import float_of_half, store_floats
from modelc.layout.loop_compiler import inlined
from modelc.layout.planes import PAIRS, TWO_BYTES, clear, load_fields, load_two, or_fields, store_two
from modelc.layout.rounding import half_of_float, inverse_of
from modelc.layout.words import Buffer, load_u8, load_u16, store_u8, store_u16


@inlined
def to_lane(blocks: Buffer, block: int, lanes: Buffer, record: int, lane: int) -> None:
    """See `loops`."""
    store_u16(lanes, record + 2 * lane, load_u16(blocks, block + 80))
    store_u16(lanes, record + 32 + 2 * lane, load_u16(blocks, block + 82))
    for s in range(16):
        store_u8(lanes, record + 64 + 16 * s + lane, load_u8(blocks, block + s))
    for b in range(8):
        codes = load_fields(blocks, block + 16 + 32 * (b // 4), 2 * (b % 4), PAIRS)
        store_two(lanes, record + 320 + TWO_BYTES * b, lane, codes)


@inlined
def from_lane(lanes: Buffer, record: int, lane: int, blocks: Buffer, block: int) -> None:
    """See `loops`."""
    store_u16(blocks, block + 80, load_u16(lanes, record + 2 * lane))
    store_u16(blocks, block + 82, load_u16(lanes, record + 32 + 2 * lane))
    for s in range(16):
        store_u8(blocks, block + s, load_u8(lanes, record + 64 + 16 * s + lane))
    for b in range(8):
        codes = load_two(lanes, record + 320 + TWO_BYTES * b, lane)
        or_fields(blocks, block + 16 + 32 * (b // 4), 2 * (b % 4), codes)


@inlined
def dequantize(blocks: Buffer, block: int, values: Buffer, at: int) -> None:
    """See `loops`."""
    d, dmin = float_of_half(load_u16(blocks, block + 80)), float_of_half(load_u16(blocks, block + 82))
    for b in range(8):
        codes = load_fields(blocks, block + 16 + 32 * (b // 4), 2 * (b % 4), PAIRS)
        first, second = load_u8(blocks, block + 2 * b), load_u8(blocks, block + 2 * b + 1)
        scale, minimum = d * np.float32(first & 15), dmin * np.float32(first >> 4)
        store_floats(values, at + 128 * b, codes[:4], 0, scale, -minimum)
        scale, minimum = d * np.float32(second & 15), dmin * np.float32(second >> 4)
        store_floats(values, at + 128 * b + 64, codes[4:], 0, scale, -minimum)


@inlined
def quantize(values: Buffer, at: int, blocks: Buffer, block: int) -> None:
    """See `loops`."""
    most_scale, most_depth = np.float32(0), np.float32(0)
    for s in range(16):
        lowest, highest = extremes_of_16(values, at + 64 * s)
        scale, minimum = fit_above(values, at + 64 * s, 16, lowest, highest, 3, np.float32(0))
        most_scale, most_depth = max(most_scale, scale), max(most_depth, -minimum)
    d, dmin = half_of_float(most_scale * np.float32(1 / 15)), half_of_float(most_depth * np.float32(1 / 15))
    store_u16(blocks, block + 80, d)
    store_u16(blocks, block + 82, dmin)
    unit, depth_unit = float_of_half(d), float_of_half(dmin)
    clear(blocks, block + 16, 16)
    for s in range(16):
        place = at + 64 * s
        scale_code, minimum_code, least_error = 0, 0, np.float32(np.inf)
        for depth in range(16):
            k, error = try_scales(values, place, 16, -depth_unit * np.float32(depth), np.float32(0), unit, 0, 3)
            if error < least_error:
                scale_code, minimum_code, least_error = int(k), depth, error
        store_u8(blocks, block + s, scale_code | minimum_code << 4)
    for b in range(8):
        first, second = load_u8(blocks, block + 2 * b), load_u8(blocks, block + 2 * b + 1)
        inverse, minimum = inverse_of(unit * np.float32(first & 15)), -depth_unit * np.float32(first >> 4)
        low_half = codes_of_16(values, at + 128 * b, minimum, inverse, 0, 3, 0)
        inverse, minimum = inverse_of(unit * np.float32(second & 15)), -depth_unit * np.float32(second >> 4)
        codes = low_half + codes_of_16(values, at + 128 * b + 64, minimum, inverse, 0, 3, 0)
        or_fields(blocks, block + 16 + 32 * (b // 4), 2 * (b % 4), codes)
