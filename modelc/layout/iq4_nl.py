"""Type iq4_nl: 32 columns of 4-bit codes into a codebook, and one scale; value = d * CODEBOOK[code].

block (18 bytes)                               lanes, record of 32 columns (288 bytes)
  0   2  d      f16                              0   32  d      16 x f16
  2  16  codes  columns 0-15 in the low         32  256  codes  NIB
                nibbles, 16-31 in the high
"""

from __future__ import annotations

from modelc.layout.codebook import look_up
from modelc.layout.codebook_fitting import codebook_codes, fit_codebook
from modelc.layout.fitting import extremes_of_32
from modelc.layout.floats import NOTHING, float_of_half, store_floats
from modelc.layout.loop_compiler import inlined
from modelc.layout.planes import load_halves, store_halves
from modelc.layout.q4_0 import from_lane, to_lane  # the same places; only the codes mean something else
from modelc.layout.rounding import furthest, half_of_float, inverse_of
from modelc.layout.words import Buffer, load_u16, store_u16

__all__ = ["dequantize", "from_lane", "quantize", "to_lane"]


@inlined
def dequantize(blocks: Buffer, block: int, values: Buffer, at: int) -> None:
    """See `loops`."""
    d = float_of_half(load_u16(blocks, block))
    store_floats(values, at, look_up(load_halves(blocks, block + 2)), 0, d, NOTHING)


@inlined
def quantize(values: Buffer, at: int, blocks: Buffer, block: int) -> None:
    """See `loops`."""
    lowest, highest = extremes_of_32(values, at)
    d = half_of_float(fit_codebook(values, at, furthest(lowest, highest)))
    store_u16(blocks, block, d)
    store_halves(blocks, block + 2, codebook_codes(values, at, inverse_of(float_of_half(d))))
