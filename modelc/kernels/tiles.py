"""Register tiles: 16 output rows times 1, 4 or 8 tokens, for every weight type and activation format.

**Order.** Columns are taken in segments of 512. Inside a segment, one chain of FMAs over ascending blocks of 32 columns
(float weights: over ascending columns); the segments' sums are added in ascending order. The order is a function of
the weight's row alone, so a token has the same bits in every tile, batch and thread.

For a block with integer dot product i (exact int32) of codes and activations, weight scale s, activation scale d and
activation sum x (float32):

    one scale for 32 columns:  acc = fma(f32(i), s * d, acc)
    two scales of 16 columns:  acc = fma(fma(f32(i1), s1, f32(i0) * s0), d, acc)
    with a min m:              acc = fma(-m, x, acc)        (halves: m0 with the first 16's sum, then m1)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from modelc.kernels.activations import SCALE_AT
from modelc.kernels.dot import dot_u8i8
from modelc.kernels.env import PANEL, RECORD_BYTES
from modelc.kernels.jit import kernel
from modelc.kernels.simd import (
    fma,
    from_bits,
    prefetch,
    splat_at,
    splat_bytes4,
    splat_i32,
    splat_zero,
    store_f32,
    tile_f32,
    tile_i32,
    to_f32,
)
from modelc.kernels.weights import BLOCK_FORMATS, FLOAT_FORMATS

i32 = np.int32

SEGMENT_BLOCKS = 16
SEGMENT_COLS = 512
AHEAD = 4096  # bytes of software prefetch: measured 1.3 times the bandwidth of the hardware's alone


def make_block_tile(dtype: str, activation: str, n_tokens: int) -> Any:
    """A tile of `n_tokens` tokens for a quantized weight type.

    Returns tile(w, p, nb, ahead, x, q, y, o, ld, valid): weights at w[p], nb blocks of 32 columns, `ahead` whether to
    prefetch weights, activation records at x[q], outputs f32 y[o + u * ld + lane] for tokens u < valid.
    """
    form = BLOCK_FORMATS[dtype]
    unpack, scales, blocks = form.unpack, form.scales, form.blocks
    header, block_bytes, has_min, halves = form.header_bytes, form.block_bytes, form.has_min, form.halves
    record = RECORD_BYTES[activation]
    scale_at = SCALE_AT[activation]
    two_planes = activation == "a16"
    zero = form.zero
    zero_shift = max(zero, 1).bit_length() - 1  # every zero is a power of two
    lines = (block_bytes + (header + 7) // 8 + 63) // 64 if blocks > 1 else (header + block_bytes + 63) // 64
    single = n_tokens == 1

    @kernel
    def dot(words, first, start, x, q):
        """Words first .. first + 3 with 16 activations from x[q] on; integer chains split in two for latency."""
        even = dot_u8i8(start, words[first], splat_bytes4(x, q))
        odd = dot_u8i8(splat_i32(i32(0)), words[first + 1], splat_bytes4(x, q + 4))
        even = dot_u8i8(even, words[first + 2], splat_bytes4(x, q + 8))
        odd = dot_u8i8(odd, words[first + 3], splat_bytes4(x, q + 12))
        return even + odd

    @kernel
    def dot_planes(words, first, start, x, q):
        """16 columns; with two planes 256 times the high plane's sum plus the low plane's."""
        if two_planes:
            high = dot(words, first, splat_i32(i32(0)), x, q)
            low = dot(words, first, start, x, q + 32)
            return (high << splat_i32(i32(8))) + low
        return dot(words, first, start, x, q)

    @kernel
    def dot_block(words, start, x, q):
        """All 8 words with 32 activations from x[q] on, two integer chains."""
        even = start
        odd = splat_i32(i32(0))
        for j in range(4):
            even = dot_u8i8(even, words[2 * j], splat_bytes4(x, q + 8 * j))
            odd = dot_u8i8(odd, words[2 * j + 1], splat_bytes4(x, q + 8 * j + 4))
        return even + odd

    @kernel
    def minus_zero(x, at):
        """-zero * (the int32 sum of activations at x[at]) in every lane."""
        if zero:
            return splat_i32(i32(0)) - (splat_bytes4(x, at) << splat_i32(i32(zero_shift)))
        return splat_i32(i32(0))

    @kernel
    def tile(w, p, nb, ahead, x, q, y, o, ld, valid):
        words = tile_i32(8)
        s = tile_f32(4)
        acc = tile_f32(n_tokens)
        total = tile_f32(n_tokens)
        for u in range(n_tokens):
            total[u] = splat_zero()
        for segment in range(0, nb, SEGMENT_BLOCKS):
            for u in range(n_tokens):
                acc[u] = splat_zero()
            for b in range(segment, min(segment + SEGMENT_BLOCKS, nb)):
                r = p + b // blocks * (header + blocks * block_bytes)
                codes = r + header + b % blocks * block_bytes
                if single or ahead:
                    for j in range(lines):
                        prefetch(w, codes + AHEAD + 64 * j)
                unpack(w, codes, words)
                scales(w, r, b % blocks, s)
                for u in range(n_tokens):
                    a = q + u * record
                    d = from_bits(splat_bytes4(x, a + scale_at))
                    if halves:
                        first = splat_bytes4(x, a + scale_at + 8)
                        second = splat_bytes4(x, a + scale_at + 12) - first
                        start0 = splat_i32(i32(0))
                        start1 = splat_i32(i32(0))
                        if zero:
                            start0 = start0 - (first << splat_i32(i32(zero_shift)))
                            start1 = start1 - (second << splat_i32(i32(zero_shift)))
                        i0 = dot_planes(words, 0, start0, x, a)
                        i1 = dot_planes(words, 4, start1, x, a + 16)
                        acc[u] = fma(fma(to_f32(i1), s[1], to_f32(i0) * s[0]), d, acc[u])
                        if has_min:
                            acc[u] = fma(splat_zero() - s[2], to_f32(first) * d, acc[u])
                            acc[u] = fma(splat_zero() - s[3], to_f32(second) * d, acc[u])
                    else:
                        start = minus_zero(x, a + scale_at + 12)
                        if two_planes:
                            high = dot_block(words, splat_i32(i32(0)), x, a)
                            i = (high << splat_i32(i32(8))) + dot_block(words, start, x, a + 32)
                        else:
                            i = dot_block(words, start, x, a)
                        acc[u] = fma(to_f32(i), s[0] * d, acc[u])
                        if has_min:
                            acc[u] = fma(splat_zero() - s[1], from_bits(splat_bytes4(x, a + scale_at + 4)), acc[u])
                q += PANEL * record
            for u in range(n_tokens):
                total[u] = total[u] + acc[u]
        for u in range(n_tokens):
            if u < valid:
                store_f32(y, o + u * ld, total[u])

    return tile


def make_float_tile(dtype: str, n_tokens: int, n_groups: int) -> Any:
    """A tile of `n_tokens` tokens and `n_groups` row groups for a float weight type, activations in float32.

    Returns tile(w, p, group, cols, x, q, ldx, y, o, ld, valid): weights of group g at byte p + g * group, activations
    x[q + u * ldx + column], outputs y[o + u * ld + 16 * g + lane] for tokens u < valid.
    """
    load, size = FLOAT_FORMATS[dtype]
    n_sums = n_tokens * n_groups

    @kernel
    def tile(w, p, group, cols, x, q, ldx, y, o, ld, valid):
        acc = tile_f32(n_sums)
        total = tile_f32(n_sums)
        for i in range(n_sums):
            total[i] = splat_zero()
        for segment in range(0, cols, SEGMENT_COLS):
            for i in range(n_sums):
                acc[i] = splat_zero()
            for k in range(segment, min(segment + SEGMENT_COLS, cols)):
                for g in range(n_groups):
                    at = p + g * group + k * size
                    prefetch(w, at + AHEAD)
                    column = load(w, at)
                    for u in range(n_tokens):
                        i = g * n_tokens + u
                        acc[i] = fma(column, splat_at(x, q + u * ldx + k), acc[i])
            for i in range(n_sums):
                total[i] = total[i] + acc[i]
        for g in range(n_groups):
            for u in range(n_tokens):
                if u < valid:
                    store_f32(y, o + u * ld + 16 * g, total[g * n_tokens + u])

    return tile
