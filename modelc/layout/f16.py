"""Type f16: IEEE 754 half precision.

lanes, record of 1 column (32 bytes)
  0  32  16 x f16
"""

from __future__ import annotations

from modelc.layout.floats import float_bits_of_half
from modelc.layout.loop_compiler import inlined
from modelc.layout.words import Buffer, load_u16, store_u16, store_u32


@inlined
def to_lane(blocks: Buffer, block: int, lanes: Buffer, record: int, lane: int) -> None:
    """See `loops`."""
    store_u16(lanes, record + 2 * lane, load_u16(blocks, block))


@inlined
def from_lane(lanes: Buffer, record: int, lane: int, blocks: Buffer, block: int) -> None:
    """See `loops`."""
    store_u16(blocks, block, load_u16(lanes, record + 2 * lane))


@inlined
def dequantize(blocks: Buffer, block: int, values: Buffer, at: int) -> None:
    """See `loops`."""
    store_u32(values, at, float_bits_of_half(load_u16(blocks, block)))
