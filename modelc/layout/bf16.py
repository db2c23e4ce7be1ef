"""Type bf16: the upper half of a float32.

lanes, record of 1 column (32 bytes)
  0  32  16 x bf16
"""

from __future__ import annotations

from modelc.layout.f16 import from_lane, to_lane
from modelc.layout.loop_compiler import inlined
from modelc.layout.words import Buffer, load_u16, store_u32

__all__ = ["dequantize", "from_lane", "to_lane"]


@inlined
def dequantize(blocks: Buffer, block: int, values: Buffer, at: int) -> None:
    """See `loops`."""
    store_u32(values, at, load_u16(blocks, block) << 16)
