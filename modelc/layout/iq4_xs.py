"""Type iq4_xs: 256 columns of 4-bit codes into a codebook; each 32 have a 6-bit scale.

value = d * (scale - 32) * CODEBOOK[code]

    block (136 bytes)                              lanes, record of 256 columns (2208 bytes)
      0    2  d            f16                       0    32  d       16 x f16
      2    2  scales high  bits 4-5 of scale b in   32   128  scales  8 x 16 x i8, scale - 32
                           bits 2b                 160  2048  codes   8 x NIB
      4    4  scales low   bits 0-3 of scale b in
                           nibble b
      8  128  codes        16 bytes for 32 columns:
                           0-15 in the low nibbles,
                           16-31 in the high
"""

from __future__ import annotations

import numpy as np

from modelc.layout.codebook import look_up
from modelc.layout.codebook_fitting import codebook_codes, fit_codebook, try_codebook
from modelc.layout.fitting import extremes_of_32
from modelc.layout.floats import NOTHING, float_of_half, store_floats
from modelc.layout.loop_compiler import inlined
from modelc.layout.planes import NIB_BYTES, load_halves, load_nib, store_halves, store_nib
from modelc.layout.rounding import furthest, half_of_float, inverse_of, load_float, nearest_code, store_float
from modelc.layout.words import Buffer, load_u8, load_u16, load_u32, store_u8, store_u16, store_u32


@inlined
def to_lane(blocks: Buffer, block: int, lanes: Buffer, record: int, lane: int) -> None:
    """See `loops`."""
    store_u16(lanes, record + 2 * lane, load_u16(blocks, block))
    for b in range(8):
        store_u8(lanes, record + 32 + 16 * b + lane, _load_scale(blocks, block, b))
        store_nib(lanes, record + 160 + NIB_BYTES * b, lane, load_halves(blocks, block + 8 + 16 * b))


@inlined
def from_lane(lanes: Buffer, record: int, lane: int, blocks: Buffer, block: int) -> None:
    """See `loops`."""
    store_u16(blocks, block, load_u16(lanes, record + 2 * lane))
    high, low = 0, 0
    for b in range(8):
        scale = load_u8(lanes, record + 32 + 16 * b + lane) + 32 & 63
        high |= scale >> 4 << 2 * b
        low |= (scale & 15) << 4 * b
        store_halves(blocks, block + 8 + 16 * b, load_nib(lanes, record + 160 + NIB_BYTES * b, lane))
    store_u16(blocks, block + 2, high)
    store_u32(blocks, block + 4, low)


@inlined
def dequantize(blocks: Buffer, block: int, values: Buffer, at: int) -> None:
    """See `loops`."""
    d = float_of_half(load_u16(blocks, block))
    for b in range(8):
        scale = d * np.float32(_load_scale(blocks, block, b))
        codes = load_halves(blocks, block + 8 + 16 * b)
        store_floats(values, at + 128 * b, look_up(codes), 0, scale, NOTHING)


@inlined
def _load_scale(blocks: Buffer, block: int, b: int) -> int:
    low = load_u32(blocks, block + 4) >> 4 * b & 15
    high = load_u16(blocks, block + 2) >> 2 * b & 3
    return (low | high << 4) - 32


@inlined
def quantize(values: Buffer, at: int, blocks: Buffer, block: int) -> None:
    """See `loops`."""
    lowest, highest = np.float32(0), np.float32(0)
    for b in range(8):
        least, most = extremes_of_32(values, at + 128 * b)
        scale = fit_codebook(values, at + 128 * b, furthest(least, most))
        store_float(blocks, block + 8 + 4 * b, scale)
        lowest, highest = min(lowest, scale), max(highest, scale)
    d = half_of_float(furthest(lowest, highest) * np.float32(-1 / 32))
    unit = float_of_half(d)
    high, low = 0, 0
    for b in range(8):
        near = nearest_code(load_float(blocks, block + 8 + 4 * b) * inverse_of(unit), -24, 23)
        k, _ = try_codebook(values, at + 128 * b, unit * np.float32(near - 8), unit)
        scale_code = near + 24 + int(k)
        high |= scale_code >> 4 << 2 * b
        low |= (scale_code & 15) << 4 * b
    store_u16(blocks, block, d)
    store_u16(blocks, block + 2, high)
    store_u32(blocks, block + 4, low)
    for b in range(8):
        inverse = inverse_of(unit * np.float32(_load_scale(blocks, block, b)))
        store_halves(blocks, block + 8 + 16 * b, codebook_codes(values, at + 128 * b, inverse))
