"""Moving keys and values to earlier positions, when the oldest tokens of a full context are dropped."""

from __future__ import annotations

from typing import Any

import numpy as np

from modelc.kernels.elementary import sincos
from modelc.kernels.env import (
    CHUNK,
    KV_BYTES,
    PAGE,
    SHIFT_ANCHOR,
    SHIFT_COMPUTED,
    SHIFT_DROPPED,
    SHIFT_FACTORS,
    SHIFT_FREQUENCIES,
    SHIFT_HEADS,
    SHIFT_KV,
    SHIFT_NEW_PAGES,
    SHIFT_OLD_PAGES,
    SHIFT_PAGE_BYTES,
)
from modelc.kernels.jit import kernel
from modelc.kernels.pointers import f32_ptr, f64_ptr, i16_ptr, i64_ptr, u8_ptr
from modelc.kernels.simd import load_f16, load_f32, store_f16, store_f32

f32 = np.float32


def make_shift(style: str, head_dim: int, kv: str) -> Any:
    """Compiled function of one parameter block (see env): positions anchor + dropped ... computed move down by dropped.

    A key is rotated back by the angle of `dropped` positions, in float32, then stored in its type; values are copied.
    Positions move in ascending order and never up, so old and new pages may be the same.
    """
    pairs = style == "pairs"
    size = KV_BYTES[kv]
    half = kv == "f16"
    page_head_bytes = PAGE * head_dim * size  # of the keys, or the values, of one head

    @kernel
    def load_key(keys, at, column, f):
        """The key at position `at` of a page into f[0 ... head_dim]; `column` holds 32 bytes on the way."""
        first = at // CHUNK * head_dim * CHUNK + at % CHUNK
        if half:
            for i in range(0, head_dim, 16):
                for j in range(16):
                    i16_ptr(column)[j] = i16_ptr(keys)[first + (i + j) * CHUNK]
                store_f32(f, i, load_f16(u8_ptr(column), 0))
        else:
            for i in range(head_dim):
                f[i] = f32_ptr(keys)[first + i * CHUNK]

    @kernel
    def store_key(keys, at, column, f):
        """The reverse of `load_key`."""
        first = at // CHUNK * head_dim * CHUNK + at % CHUNK
        if half:
            for i in range(0, head_dim, 16):
                store_f16(u8_ptr(column), 0, load_f32(f, i))
                for j in range(16):
                    i16_ptr(keys)[first + (i + j) * CHUNK] = i16_ptr(column)[j]
        else:
            for i in range(head_dim):
                f32_ptr(keys)[first + i * CHUNK] = f[i]

    @kernel
    def shift(parameters):
        P = i64_ptr(parameters)
        old_pages = i64_ptr(P[SHIFT_OLD_PAGES])
        new_pages = i64_ptr(P[SHIFT_NEW_PAGES])
        frequencies = f64_ptr(P[SHIFT_FREQUENCIES])
        factors = f32_ptr(P[SHIFT_FACTORS])  # cos, sin, the key, the rotated key, then 32 bytes
        key = f32_ptr(P[SHIFT_FACTORS] + 4 * head_dim)
        rotated = f32_ptr(P[SHIFT_FACTORS] + 8 * head_dim)
        column = P[SHIFT_FACTORS] + 12 * head_dim
        n = head_dim // 2
        for i in range(n):
            s, c = sincos(-np.float64(P[SHIFT_DROPPED]) * frequencies[i])
            factors[i] = f32(c)
            factors[n + i] = f32(s)
        for head in range(P[SHIFT_HEADS]):
            base = P[SHIFT_KV] + head * 2 * page_head_bytes
            for target in range(P[SHIFT_ANCHOR], P[SHIFT_COMPUTED] - P[SHIFT_DROPPED]):
                source = target + P[SHIFT_DROPPED]
                old = base + old_pages[source // PAGE] * P[SHIFT_PAGE_BYTES]
                new = base + new_pages[target // PAGE] * P[SHIFT_PAGE_BYTES]
                load_key(old, source % PAGE, column, key)
                for i in range(n):
                    a, b = (2 * i, 2 * i + 1) if pairs else (i, i + n)
                    rotated[a] = key[a] * factors[i] - key[b] * factors[n + i]
                    rotated[b] = key[a] * factors[n + i] + key[b] * factors[i]
                store_key(new, target % PAGE, column, rotated)
                value_from = u8_ptr(old + page_head_bytes + source % PAGE * head_dim * size)
                value_to = u8_ptr(new + page_head_bytes + target % PAGE * head_dim * size)
                for i in range(0, head_dim, 16):
                    if half:
                        store_f16(value_to, 2 * i, load_f16(value_from, 2 * i))
                    else:
                        store_f32(value_to, 4 * i, load_f32(value_from, 4 * i))

    return shift
