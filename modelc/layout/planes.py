"""The codes of 32 columns, as 8 words of 4 columns: out of and into source blocks, into and out of lanes.

A code is what a weight is before its scale is applied. Word j holds columns 4j to 4j+3, the first in its lowest byte.
In lanes, 16 rows by 32 columns are one or two planes. A plane is made of 64-byte vectors: 16 words, one for each row.

    NIB  256 bytes  vector i (0..3): word 2i in the low nibbles, word 2i+1 in the high ones
    BIT   64 bytes  word j in bits j
    TWO  128 bytes  vector h (0..1): word 4h+i (i = 0..3) in bits 2i and 2i+1
"""

from __future__ import annotations

from modelc.layout.loop_compiler import inlined
from modelc.layout.words import Buffer, Words, load_u32, or_u32, store_u32

# One code in each byte.
BYTES = 0xFFFFFFFF
NIBBLES = 0x0F0F0F0F
PAIRS = 0x03030303
BITS = 0x01010101

NIB_BYTES = 256
BIT_BYTES = 64
TWO_BYTES = 128


@inlined
def load_fields(blocks: Buffer, at: int, shift: int, mask: int) -> Words:
    """The codes that 32 consecutive bytes at `at` hold, one a byte, in the bits `mask << shift`."""
    return (
        (load_u32(blocks, at) >> shift) & mask,
        (load_u32(blocks, at + 4) >> shift) & mask,
        (load_u32(blocks, at + 8) >> shift) & mask,
        (load_u32(blocks, at + 12) >> shift) & mask,
        (load_u32(blocks, at + 16) >> shift) & mask,
        (load_u32(blocks, at + 20) >> shift) & mask,
        (load_u32(blocks, at + 24) >> shift) & mask,
        (load_u32(blocks, at + 28) >> shift) & mask,
    )


@inlined
def or_fields(blocks: Buffer, at: int, shift: int, words: Words) -> None:
    """Inverse of `load_fields`, into bytes that hold zeros there."""
    for j in range(8):
        or_u32(blocks, at + 4 * j, words[j] << shift)


@inlined
def clear(blocks: Buffer, at: int, n_words: int) -> None:
    """Makes `n_words` words of 4 bytes zero."""
    for j in range(n_words):
        store_u32(blocks, at + 4 * j, 0)


@inlined
def part(words: Words, shift: int, mask: int) -> Words:
    """The bits `mask << shift` of every code: what `join` puts together."""
    return (
        (words[0] >> shift) & mask,
        (words[1] >> shift) & mask,
        (words[2] >> shift) & mask,
        (words[3] >> shift) & mask,
        (words[4] >> shift) & mask,
        (words[5] >> shift) & mask,
        (words[6] >> shift) & mask,
        (words[7] >> shift) & mask,
    )


@inlined
def join(low: Words, high: Words, shift: int) -> Words:
    """The codes low | high << shift."""
    return (
        low[0] | high[0] << shift,
        low[1] | high[1] << shift,
        low[2] | high[2] << shift,
        low[3] | high[3] << shift,
        low[4] | high[4] << shift,
        low[5] | high[5] << shift,
        low[6] | high[6] << shift,
        low[7] | high[7] << shift,
    )


@inlined
def load_halves(blocks: Buffer, at: int) -> Words:
    """The codes that 16 bytes at `at` hold: columns 0 to 15 in the low nibbles, 16 to 31 in the high ones."""
    a, b, c, d = load_u32(blocks, at), load_u32(blocks, at + 4), load_u32(blocks, at + 8), load_u32(blocks, at + 12)
    return (
        a & NIBBLES,
        b & NIBBLES,
        c & NIBBLES,
        d & NIBBLES,
        (a >> 4) & NIBBLES,
        (b >> 4) & NIBBLES,
        (c >> 4) & NIBBLES,
        (d >> 4) & NIBBLES,
    )


@inlined
def store_halves(blocks: Buffer, at: int, words: Words) -> None:
    """Inverse of `load_halves`."""
    store_u32(blocks, at, words[0] | words[4] << 4)
    store_u32(blocks, at + 4, words[1] | words[5] << 4)
    store_u32(blocks, at + 8, words[2] | words[6] << 4)
    store_u32(blocks, at + 12, words[3] | words[7] << 4)


@inlined
def spread_bits(bits: int) -> Words:
    """The 1-bit codes of a 32-bit number, column c in bit c."""
    return (
        _spread(bits),
        _spread(bits >> 4),
        _spread(bits >> 8),
        _spread(bits >> 12),
        _spread(bits >> 16),
        _spread(bits >> 20),
        _spread(bits >> 24),
        _spread(bits >> 28),
    )


@inlined
def gather_bits(words: Words) -> int:
    """Inverse of `spread_bits`."""
    return (
        _gather(words[0])
        | _gather(words[1]) << 4
        | _gather(words[2]) << 8
        | _gather(words[3]) << 12
        | _gather(words[4]) << 16
        | _gather(words[5]) << 20
        | _gather(words[6]) << 24
        | _gather(words[7]) << 28
    )


@inlined
def _spread(bits: int) -> int:
    # Bit k goes to bit 8k: the product adds copies shifted by 7k, which never carry into each other.
    return ((bits & 15) * 0x00204081) & BITS


@inlined
def _gather(word: int) -> int:
    # Bit 8k goes to bit 28 + k: copies shifted by 28 - 7k.
    return ((word * 0x10204080) >> 28) & 15


@inlined
def store_nib(lanes: Buffer, at: int, lane: int, words: Words) -> None:
    """Puts a row's codes of 4 bits into the NIB plane at `at`."""
    store_u32(lanes, at + 4 * lane, words[0] | words[1] << 4)
    store_u32(lanes, at + 64 + 4 * lane, words[2] | words[3] << 4)
    store_u32(lanes, at + 128 + 4 * lane, words[4] | words[5] << 4)
    store_u32(lanes, at + 192 + 4 * lane, words[6] | words[7] << 4)


@inlined
def load_nib(lanes: Buffer, at: int, lane: int) -> Words:
    """Inverse of `store_nib`."""
    a, b = load_u32(lanes, at + 4 * lane), load_u32(lanes, at + 64 + 4 * lane)
    c, d = load_u32(lanes, at + 128 + 4 * lane), load_u32(lanes, at + 192 + 4 * lane)
    return (
        a & NIBBLES,
        (a >> 4) & NIBBLES,
        b & NIBBLES,
        (b >> 4) & NIBBLES,
        c & NIBBLES,
        (c >> 4) & NIBBLES,
        d & NIBBLES,
        (d >> 4) & NIBBLES,
    )


@inlined
def store_bit(lanes: Buffer, at: int, lane: int, words: Words) -> None:
    """Puts a row's codes of 1 bit into the BIT plane at `at`."""
    low = words[0] | words[1] << 1 | words[2] << 2 | words[3] << 3
    high = words[4] << 4 | words[5] << 5 | words[6] << 6 | words[7] << 7
    store_u32(lanes, at + 4 * lane, low | high)


@inlined
def load_bit(lanes: Buffer, at: int, lane: int) -> Words:
    """Inverse of `store_bit`."""
    a = load_u32(lanes, at + 4 * lane)
    return (
        a & BITS,
        (a >> 1) & BITS,
        (a >> 2) & BITS,
        (a >> 3) & BITS,
        (a >> 4) & BITS,
        (a >> 5) & BITS,
        (a >> 6) & BITS,
        (a >> 7) & BITS,
    )


@inlined
def store_two(lanes: Buffer, at: int, lane: int, words: Words) -> None:
    """Puts a row's codes of 2 bits into the TWO plane at `at`."""
    store_u32(lanes, at + 4 * lane, words[0] | words[1] << 2 | words[2] << 4 | words[3] << 6)
    store_u32(lanes, at + 64 + 4 * lane, words[4] | words[5] << 2 | words[6] << 4 | words[7] << 6)


@inlined
def load_two(lanes: Buffer, at: int, lane: int) -> Words:
    """Inverse of `store_two`."""
    a, b = load_u32(lanes, at + 4 * lane), load_u32(lanes, at + 64 + 4 * lane)
    return (
        a & PAIRS,
        (a >> 2) & PAIRS,
        (a >> 4) & PAIRS,
        (a >> 6) & PAIRS,
        b & PAIRS,
        (b >> 2) & PAIRS,
        (b >> 4) & PAIRS,
        (b >> 6) & PAIRS,
    )
