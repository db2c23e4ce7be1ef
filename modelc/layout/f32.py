"""Type f32: plain float32.

lanes, record of 1 column (64 bytes)
  0  64  16 x f32
"""

from __future__ import annotations

from modelc.layout.loop_compiler import inlined
from modelc.layout.words import Buffer, load_u32, store_u32


@inlined
def to_lane(blocks: Buffer, block: int, lanes: Buffer, record: int, lane: int) -> None:
    """See `loops`."""
    store_u32(lanes, record + 4 * lane, load_u32(blocks, block))


@inlined
def from_lane(lanes: Buffer, record: int, lane: int, blocks: Buffer, block: int) -> None:
    """See `loops`."""
    store_u32(blocks, block, load_u32(lanes, record + 4 * lane))


@inlined
def dequantize(blocks: Buffer, block: int, values: Buffer, at: int) -> None:
    """See `loops`."""
    store_u32(values, at, load_u32(blocks, block))
