"""Register tiles: 16 or 32 output rows times 1 to 8 tokens, for every weight type and activation format.

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
from modelc.kernels.dot import (
    biased_start,
    dot_biased,
    dot_narrow,
    dot_symmetric,
    narrow_end,
    narrow_start,
    symmetric_start,
)
from modelc.kernels.env import PANEL, RECORD_BYTES
from modelc.kernels.jit import inlined, kernel
from modelc.kernels.simd import (
    fma,
    from_bits,
    load_f32,
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


def make_block_tile(dtype: str, activation: str, n_tokens: int, n_groups: int) -> Any:
    """A tile of `n_tokens` tokens and `n_groups` row groups for a quantized weight type.

    Returns tile(w, p, group, nb, soon, lines, x, q, y, o, ld, valid): weights of group g at w[p + g * group], nb blocks
    of 32 columns, activation records at x[q], outputs f32 y[o + u * ld + 16 * g + lane] for tokens u < valid. With each
    block `lines` lines of 64 bytes are prefetched, from w[soon] on.

    2 groups x 4 tokens is the largest tile whose sums and words stay in 32 registers; each broadcast activation serves
    two dot products, which frees the load ports (1.03 to 1.12 times as fast as 1 x 8, at 0.75 of the VNNI peak). Where
    registers hold 8 vectors, 1 x 4 is 1.5 times as fast.
    """
    form = BLOCK_FORMATS[dtype]
    word, scales, blocks = form.word, form.scales, form.blocks
    header, block_bytes, has_min, halves = form.header_bytes, form.block_bytes, form.has_min, form.halves
    record = RECORD_BYTES[activation]
    scale_at = SCALE_AT[activation]
    two_planes = activation == "a16"
    zero = form.zero
    zero_shift = max(zero, 1).bit_length() - 1  # every zero is a power of two
    is_narrow = form.bits < 7
    dot, start_of = (dot_biased, biased_start) if two_planes else (dot_symmetric, symmetric_start)
    if is_narrow:
        dot = dot_narrow
    n_exact = min(8, 32767 // (256 * (2**form.bits - 1))) if is_narrow else 8  # words of which 16 bits hold the sum
    n_sums = n_groups * n_tokens
    n_scales = 4 * n_groups

    @inlined
    def minus_zero(total):
        """-zero * (an int32 sum of activations), lane by lane."""
        if zero == 128:
            return start_of(total)
        if zero:
            return splat_i32(i32(0)) - (total << splat_i32(i32(zero_shift)))
        return splat_i32(i32(0))

    @inlined
    def add_word(i, j, w, codes, group, x, q):
        """i[g * n_tokens + u] += word j of group g times the bytes of token u."""
        for g in range(n_groups):
            weights = word(w, codes + g * group, j)
            for u in range(n_tokens):
                at = g * n_tokens + u
                i[at] = dot(i[at], weights, splat_bytes4(x, q + u * record + 4 * j))

    @inlined
    def add_words(i, first, count, w, codes, group, x, q):
        """As `add_word`, words first .. first + count; an even and an odd one share what they are unpacked from."""
        for j in range(first, first + count, 2):
            add_word(i, j, w, codes, group, x, q)
            add_word(i, j + 1, w, codes, group, x, q)

    @inlined
    def add_dots(i, narrow, first, count, w, codes, group, x, q):
        """As `add_words`, in sums that may be narrow meanwhile."""
        if is_narrow:
            for k in range(first, first + count, n_exact):
                for at in range(n_sums):
                    narrow[at] = narrow_start(i[at])
                add_words(narrow, k, min(n_exact, count), w, codes, group, x, q)
                for at in range(n_sums):
                    i[at] = narrow_end(narrow[at], i[at])
        else:
            add_words(i, first, count, w, codes, group, x, q)

    @inlined
    def dots(i, narrow, first, count, w, codes, group, x, q, sums_at):
        """The exact integer dot products of words first .. first + count; `sums_at`: which sum the zero applies to."""
        if two_planes:
            for at in range(n_sums):
                i[at] = splat_i32(i32(0))
            add_dots(i, narrow, first, count, w, codes, group, x, q)
        for u in range(n_tokens):
            a = q + u * record + scale_at + 8
            total = splat_bytes4(x, a + 4)
            if halves:
                total = splat_bytes4(x, a) if sums_at == 0 else total - splat_bytes4(x, a)
            start = minus_zero(total)
            for g in range(n_groups):
                at = g * n_tokens + u
                i[at] = (i[at] << splat_i32(i32(8))) + start if two_planes else start
        add_dots(i, narrow, first, count, w, codes, group, x, q + 32 if two_planes else q)

    @inlined
    def add_block(acc, i, narrow, s, w, codes, group, x, q):
        """acc += one block with one scale for 32 columns."""
        dots(i, narrow, 0, 8, w, codes, group, x, q, 0)
        for u in range(n_tokens):
            d = from_bits(splat_bytes4(x, q + u * record + scale_at))
            for g in range(n_groups):
                at = g * n_tokens + u
                acc[at] = fma(to_f32(i[at]), s[4 * g] * d, acc[at])
                if has_min:
                    x_sum = from_bits(splat_bytes4(x, q + u * record + scale_at + 4))
                    acc[at] = fma(splat_zero() - s[4 * g + 1], x_sum, acc[at])

    @inlined
    def add_halves(acc, i, narrow, part, s, w, codes, group, x, q):
        """acc += one block with two scales of 16 columns."""
        dots(i, narrow, 0, 4, w, codes, group, x, q, 0)
        for g in range(n_groups):
            for u in range(n_tokens):
                at = g * n_tokens + u
                part[at] = to_f32(i[at]) * s[4 * g]
        dots(i, narrow, 4, 4, w, codes, group, x, q, 1)
        for u in range(n_tokens):
            a = q + u * record + scale_at
            d = from_bits(splat_bytes4(x, a))
            for g in range(n_groups):
                at = g * n_tokens + u
                acc[at] = fma(fma(to_f32(i[at]), s[4 * g + 1], part[at]), d, acc[at])
                if has_min:
                    first = splat_bytes4(x, a + 8)
                    second = splat_bytes4(x, a + 12) - first
                    acc[at] = fma(splat_zero() - s[4 * g + 2], to_f32(first) * d, acc[at])
                    acc[at] = fma(splat_zero() - s[4 * g + 3], to_f32(second) * d, acc[at])

    @kernel
    def tile(w, p, group, nb, soon, lines, x, q, y, o, ld, valid):
        i = tile_i32(n_sums)
        narrow = tile_i32(n_sums)
        part = tile_f32(n_sums)
        s = tile_f32(n_scales)
        acc = tile_f32(n_sums)
        total = tile_f32(n_sums)
        for at in range(n_sums):
            total[at] = splat_zero()
        for segment in range(0, nb, SEGMENT_BLOCKS):
            for at in range(n_sums):
                acc[at] = splat_zero()
            for b in range(segment, min(segment + SEGMENT_BLOCKS, nb)):
                r = p + b // blocks * (header + blocks * block_bytes)
                codes = r + header + b % blocks * block_bytes
                for _ in range(lines):
                    prefetch(w, soon)
                    soon += 64
                for g in range(n_groups):
                    scales(w, r + g * group, b % blocks, s, 4 * g)
                if halves:
                    add_halves(acc, i, narrow, part, s, w, codes, group, x, q)
                else:
                    add_block(acc, i, narrow, s, w, codes, group, x, q)
                q += PANEL * record
            for at in range(n_sums):
                total[at] = total[at] + acc[at]
        for g in range(n_groups):
            for u in range(n_tokens):
                if u < valid:
                    store_f32(y, o + u * ld + 16 * g, total[g * n_tokens + u])

    return tile


def make_float_tile(dtype: str, n_tokens: int, n_groups: int, adds: bool = False) -> Any:
    """A tile of `n_tokens` tokens and `n_groups` row groups for a float weight type, activations in float32.

    Returns tile(w, p, group, cols, soon, stride, spacing, x, q, ldx, y, o, ld, valid): weights of group g at byte
    p + g * group, activations x[q + u * ldx + column], outputs y[o + u * ld + 16 * g + lane] for tokens u < valid. With
    each column a line is prefetched for each group, from w[soon + g * spacing]; `soon` moves on by `stride` bytes.
    `adds`: the outputs are added to what is there.
    """
    load, size = FLOAT_FORMATS[dtype]
    n_sums = n_tokens * n_groups

    @kernel
    def tile(w, p, group, cols, soon, stride, spacing, x, q, ldx, y, o, ld, valid):
        acc = tile_f32(n_sums)
        total = tile_f32(n_sums)
        for i in range(n_sums):
            total[i] = splat_zero()
        for segment in range(0, cols, SEGMENT_COLS):
            for i in range(n_sums):
                acc[i] = splat_zero()
            for k in range(segment, min(segment + SEGMENT_COLS, cols)):
                for g in range(n_groups):
                    prefetch(w, soon + g * spacing)
                soon += stride
                for g in range(n_groups):
                    column = load(w, p + g * group + k * size)
                    for u in range(n_tokens):
                        i = g * n_tokens + u
                        acc[i] = fma(column, splat_at(x, q + u * ldx + k), acc[i])
            for i in range(n_sums):
                total[i] = total[i] + acc[i]
        for g in range(n_groups):
            for u in range(n_tokens):
                if u < valid:
                    at = o + u * ld + 16 * g
                    product = total[g * n_tokens + u]
                    if adds:
                        product = load_f32(y, at) + product
                    store_f32(y, at, product)

    return tile
