"""The 12 bytes in which q4_k and q5_k keep 8 scales and 8 minimums of 6 bits each.

byte i (0-3)       scale i, bits 0-5       | bits 4-5 of scale i+4 above
byte 4+i           minimum i, bits 0-5     | bits 4-5 of minimum i+4 above
byte 8+i           scale i+4, bits 0-3     | minimum i+4, bits 0-3 above
"""

from __future__ import annotations

import numpy as np

from modelc.layout.fitting import extremes_of_32, fit_above, try_scales
from modelc.layout.floats import float_of_half
from modelc.layout.loop_compiler import inlined
from modelc.layout.rounding import half_of_float, inverse_of, load_float, nearest_code, store_float
from modelc.layout.words import Buffer, load_u8, or_u8, store_u8, store_u16, store_u32


@inlined
def load_scale(blocks: Buffer, at: int, i: int) -> int:
    """Scale i (0 to 7) of the 12 bytes at `at`."""
    if i < 4:
        return load_u8(blocks, at + i) & 63
    return load_u8(blocks, at + i + 4) & 15 | load_u8(blocks, at + i - 4) >> 6 << 4


@inlined
def load_minimum(blocks: Buffer, at: int, i: int) -> int:
    """Minimum i (0 to 7) of the 12 bytes at `at`."""
    if i < 4:
        return load_u8(blocks, at + i + 4) & 63
    return load_u8(blocks, at + i + 4) >> 4 | load_u8(blocks, at + i) >> 6 << 4


@inlined
def scales_to_lane(blocks: Buffer, at: int, lanes: Buffer, record: int, lane: int) -> None:
    """Writes scales (8 x 16 bytes at `record`) and minimums (8 x 16 bytes after them) of one row."""
    for i in range(8):
        store_u8(lanes, record + 16 * i + lane, load_scale(blocks, at, i))
        store_u8(lanes, record + 128 + 16 * i + lane, load_minimum(blocks, at, i))


@inlined
def scales_from_lane(lanes: Buffer, record: int, lane: int, blocks: Buffer, at: int) -> None:
    """Inverse of `scales_to_lane`."""
    for i in range(4):
        scale, high_scale = load_u8(lanes, record + 16 * i + lane), load_u8(lanes, record + 16 * i + 64 + lane)
        minimum, high_minimum = (
            load_u8(lanes, record + 128 + 16 * i + lane),
            load_u8(lanes, record + 192 + 16 * i + lane),
        )
        store_u8(blocks, at + i, scale | high_scale >> 4 << 6)
        store_u8(blocks, at + 4 + i, minimum | high_minimum >> 4 << 6)
        store_u8(blocks, at + 8 + i, high_scale & 15 | (high_minimum & 15) << 4)


@inlined
def fit_scales(values: Buffer, at: int, blocks: Buffer, block: int, room: int, most: int) -> None:
    """Chooses scales and minimums for 256 floats: writes d, dmin and the 12 bytes behind them.

    Args:
        values: The floats.
        at: Byte at which they begin.
        blocks: Where d (f16), dmin (f16) and the 12 bytes go, at byte `block`.
        block: See `blocks`.
        room: Byte of `blocks` behind which 64 bytes may be overwritten.
        most: The largest code.
    """
    most_scale, most_depth = np.float32(0), np.float32(0)
    for b in range(8):
        lowest, highest = extremes_of_32(values, at + 128 * b)
        scale, minimum = fit_above(values, at + 128 * b, 32, lowest, highest, most, np.float32(0))
        store_float(blocks, room + 8 * b, scale)
        store_float(blocks, room + 8 * b + 4, -minimum)
        most_scale, most_depth = max(most_scale, scale), max(most_depth, -minimum)
    d = float_of_half(half_of_float(most_scale * np.float32(1 / 63)))
    dmin = float_of_half(half_of_float(most_depth * np.float32(1 / 63)))
    store_u16(blocks, block, half_of_float(d))
    store_u16(blocks, block + 2, half_of_float(dmin))
    for i in range(3):
        store_u32(blocks, block + 4 + 4 * i, 0)
    for b in range(8):
        first = nearest_code(load_float(blocks, room + 8 * b) * inverse_of(d), 8, 56) - 8
        near = nearest_code(load_float(blocks, room + 8 * b + 4) * inverse_of(dmin), 0, 63)
        scale_code, minimum_code, least_error = 0, 0, np.float32(np.inf)
        for depth in range(max(near - 1, 0), min(near + 1, 63) + 1):
            minimum = -dmin * np.float32(depth)
            k, error = try_scales(values, at + 128 * b, 32, minimum, d * np.float32(first), d, 0, most)
            if error < least_error:
                scale_code, minimum_code, least_error = first + int(k), depth, error
        or_scale(blocks, block + 4, b, scale_code)
        or_minimum(blocks, block + 4, b, minimum_code)


@inlined
def or_scale(blocks: Buffer, at: int, i: int, scale: int) -> None:
    """Inverse of `load_scale`, into bytes that hold zeros there."""
    if i < 4:
        or_u8(blocks, at + i, scale)
    else:
        or_u8(blocks, at + i + 4, scale & 15)
        or_u8(blocks, at + i - 4, scale >> 4 << 6)


@inlined
def or_minimum(blocks: Buffer, at: int, i: int, minimum: int) -> None:
    """Inverse of `load_minimum`, into bytes that hold zeros there."""
    if i < 4:
        or_u8(blocks, at + i + 4, minimum)
    else:
        or_u8(blocks, at + i + 4, (minimum & 15) << 4)
        or_u8(blocks, at + i, minimum >> 4 << 6)
