"""The 12 bytes in which q4_k and q5_k keep 8 scales and 8 minimums of 6 bits each.

byte i (0-3)       scale i, bits 0-5       | bits 4-5 of scale i+4 above
byte 4+i           minimum i, bits 0-5     | bits 4-5 of minimum i+4 above
byte 8+i           scale i+4, bits 0-3     | minimum i+4, bits 0-3 above
"""

from __future__ import annotations

from modelc.layout.parallel import inlined
from modelc.layout.words import Buffer, load_u8, store_u8


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
