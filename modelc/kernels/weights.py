"""How each weight type's stored records are read: the one table that tiles and row look-ups are made from.

A record holds 16 rows (the lanes) of 32 columns, or of 256 for the K types; the record maps are drawn in
`modelc.layout`. `word` unpacks word j of a block's 8: byte 4 * lane + k is the unsigned code of column 4j + k.
The value of a code is `scale * (code - zero) - min` with one scale for 32 columns, or two (`halves`) for 16 each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from modelc.kernels.codebook import look_up
from modelc.kernels.jit import inlined
from modelc.kernels.simd import (
    load_bf16,
    load_bytes,
    load_f16,
    load_f32,
    load_i8,
    load_u8,
    splat_i32,
    splat_zero,
    to_f32,
)

i32 = np.int32

LOW4 = i32(0x0F0F0F0F)
BIT2 = i32(0x04040404)
BIT4 = i32(0x10101010)
BITS2 = i32(0x03030303)
BITS45 = i32(0x30303030)


@inlined
def nibbles(w, p, j):
    """NIB: packed word j // 2 has even words in its low nibbles and odd ones in its high nibbles."""
    packed = load_bytes(w, p + 64 * (j // 2))
    if j % 2 == 1:
        packed = packed >> splat_i32(i32(4))
    return packed & splat_i32(LOW4)


@inlined
def nibbles_bit(w, p, j):
    """NIB then BIT: a fifth bit from the 64 bytes behind the nibbles (bit j belongs to word j)."""
    bits = load_bytes(w, p + 256)
    bits = bits << splat_i32(i32(4 - j)) if j < 4 else bits >> splat_i32(i32(j - 4))
    return nibbles(w, p, j) | (bits & splat_i32(BIT4))


@inlined
def nibbles_two(w, p, j):
    """NIB then TWO: two more bits from the 128 bytes behind the nibbles."""
    two = load_bytes(w, p + 256 + 64 * (j // 4))
    k = j % 4
    two = two << splat_i32(i32(4 - 2 * k)) if k < 2 else two >> splat_i32(i32(2 * k - 4))
    return nibbles(w, p, j) | (two & splat_i32(BITS45))


@inlined
def two_bits(w, p, j):
    """TWO: 2 packed words of four 2-bit codes."""
    return (load_bytes(w, p + 64 * (j // 4)) >> splat_i32(i32(2 * (j % 4)))) & splat_i32(BITS2)


@inlined
def two_bits_bit(w, p, j):
    """TWO then BIT: a third bit from the 64 bytes behind."""
    bits = load_bytes(w, p + 128)
    bits = bits << splat_i32(i32(2 - j)) if j < 2 else bits >> splat_i32(i32(j - 2))
    return two_bits(w, p, j) | (bits & splat_i32(BIT2))


@inlined
def whole_bytes(w, p, j):
    """8 words as they are."""
    return load_bytes(w, p + 64 * j)


@inlined
def codebook(w, p, j):
    """NIB through the 16 values of IQ4_NL, each plus 128."""
    return look_up(nibbles(w, p, j))


# scales(w, record, block_in_record, s) writes s[0] scale, s[1] min (for 32 columns) or s[0..1] scales, s[2..3] mins
# (halves)


@inlined
def scales_d(w, p, b, s, i):
    """One float16 scale for each row."""
    s[i] = load_f16(w, p)


@inlined
def scales_dm(w, p, b, s, i):
    """A float16 scale and a float16 offset that is added; kept as its negative, the min."""
    s[i] = load_f16(w, p)
    s[i + 1] = splat_zero() - load_f16(w, p + 32)


@inlined
def scales_k45(w, p, b, s, i):
    """Q4_K, Q5_K: 6-bit scale and min for each 32 columns, times the record's d and dmin."""
    s[i] = load_f16(w, p) * to_f32(load_u8(w, p + 64 + 16 * b))
    s[i + 1] = load_f16(w, p + 32) * to_f32(load_u8(w, p + 192 + 16 * b))


@inlined
def scales_i8(w, p, b, s, i):
    """IQ4_XS: a signed scale for each 32 columns."""
    s[i] = load_f16(w, p) * to_f32(load_i8(w, p + 32 + 16 * b))


@inlined
def scales_i8_halves(w, p, b, s, i):
    """Q6_K, Q3_K: a signed scale for each 16 columns."""
    d = load_f16(w, p)
    s[i] = d * to_f32(load_i8(w, p + 32 + 32 * b))
    s[i + 1] = d * to_f32(load_i8(w, p + 48 + 32 * b))


@inlined
def scales_k2(w, p, b, s, i):
    """Q2_K: for each 16 columns a byte with a 4-bit scale (low) and a 4-bit min (high)."""
    d = load_f16(w, p)
    d_min = load_f16(w, p + 32)
    four = splat_i32(i32(4))
    low4 = splat_i32(i32(15))
    first = load_u8(w, p + 64 + 32 * b)
    second = load_u8(w, p + 80 + 32 * b)
    s[i] = d * to_f32(first & low4)
    s[i + 1] = d * to_f32(second & low4)
    s[i + 2] = d_min * to_f32(first >> four)
    s[i + 3] = d_min * to_f32(second >> four)


@dataclass(frozen=True, slots=True)
class BlockFormat:
    """Where a quantized type keeps what in a record of 16 rows.

    Attributes:
        blocks: blocks of 32 columns in a record (1, or 8 for the 256-column types).
        header_bytes: before the codes of the first block.
        block_bytes: codes of one block.
        bits: of a code, as `word` gives it.
        zero: what is subtracted from an unsigned code.
        has_min: whether a min is subtracted.
        halves: whether scales belong to 16 columns instead of 32.
        word: (w, byte offset of the block's codes, j) -> word j.
        scales: (w, byte offset of the record, block in record, tile of floats, first index) -> None.
    """

    blocks: int
    header_bytes: int
    block_bytes: int
    bits: int
    zero: int
    has_min: bool
    halves: bool
    word: Callable[..., Any]
    scales: Callable[..., Any]

    @property
    def record_bytes(self) -> int:
        """Bytes of one record."""
        return self.header_bytes + self.blocks * self.block_bytes


BLOCK_FORMATS = {
    "q4_0": BlockFormat(1, 32, 256, 4, 8, False, False, nibbles, scales_d),
    "q4_1": BlockFormat(1, 64, 256, 4, 0, True, False, nibbles, scales_dm),
    "q5_0": BlockFormat(1, 32, 320, 5, 16, False, False, nibbles_bit, scales_d),
    "q5_1": BlockFormat(1, 64, 320, 5, 0, True, False, nibbles_bit, scales_dm),
    "q8_0": BlockFormat(1, 32, 512, 8, 128, False, False, whole_bytes, scales_d),
    "iq4_nl": BlockFormat(1, 32, 256, 8, 128, False, False, codebook, scales_d),
    "q2_k": BlockFormat(8, 320, 128, 2, 0, True, True, two_bits, scales_k2),
    "q3_k": BlockFormat(8, 288, 192, 3, 4, False, True, two_bits_bit, scales_i8_halves),
    "q4_k": BlockFormat(8, 320, 256, 4, 0, True, False, nibbles, scales_k45),
    "q5_k": BlockFormat(8, 320, 320, 5, 0, True, False, nibbles_bit, scales_k45),
    "q6_k": BlockFormat(8, 288, 384, 6, 32, False, True, nibbles_two, scales_i8_halves),
    "iq4_xs": BlockFormat(8, 160, 256, 8, 128, False, False, codebook, scales_i8),
}

# A float type's record is one column: 16 values. (load, bytes of a record)
FLOAT_FORMATS: dict[str, tuple[Any, int]] = {"f32": (load_f32, 64), "f16": (load_f16, 32), "bf16": (load_bf16, 32)}


def group_bytes(dtype: str, cols: int) -> int:
    """Bytes of 16 rows of `cols` columns in the stored layout."""
    if dtype in FLOAT_FORMATS:
        return cols * FLOAT_FORMATS[dtype][1]
    form = BLOCK_FORMATS[dtype]
    return cols // (32 * form.blocks) * form.record_bytes
