"""Moving keys and values to earlier positions, when the oldest tokens of a full context are dropped."""

from __future__ import annotations

from typing import Any

import numpy as np

from modelc.kernels.elementary import sincos
from modelc.kernels.env import (
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
    SHIFT_ROTATED,
)
from modelc.kernels.jit import kernel
from modelc.kernels.kv_pages import head_bytes
from modelc.kernels.kv_vectors import make_copy_value, make_load_key, make_store_key
from modelc.kernels.pointers import f32_ptr, f64_ptr, i64_ptr

f32 = np.float32


def make_shift(style: str, head_dim: int, kv: str) -> Any:
    """Compiled function of one parameter block (see env): positions anchor + dropped ... computed move down by dropped.

    A key is rotated back by the angle of `dropped` positions, in float32 from its most exact form, then stored in every
    form; values are copied. Positions move in ascending order and never up, so old and new pages may be the same.
    """
    pairs = style == "pairs"
    size = head_bytes(head_dim, kv)
    load_key, store_key = make_load_key(head_dim, kv), make_store_key(head_dim, kv)
    copy_value = make_copy_value(head_dim, kv)

    @kernel
    def shift(parameters):
        P = i64_ptr(parameters)
        old_pages = i64_ptr(P[SHIFT_OLD_PAGES])
        new_pages = i64_ptr(P[SHIFT_NEW_PAGES])
        frequencies = f64_ptr(P[SHIFT_FREQUENCIES])
        f = f32_ptr(P[SHIFT_FACTORS])  # cos, sin, the key, the rotated key, then 64 bytes
        key, rotated = head_dim, 2 * head_dim
        work = P[SHIFT_FACTORS] + 12 * head_dim
        n = P[SHIFT_ROTATED] // 2
        for i in range(n):
            s, c = sincos(-np.float64(P[SHIFT_DROPPED]) * frequencies[i])
            f[i] = f32(c)
            f[n + i] = f32(s)
        for head in range(P[SHIFT_HEADS]):
            base = P[SHIFT_KV] + head * size
            for target in range(P[SHIFT_ANCHOR], P[SHIFT_COMPUTED] - P[SHIFT_DROPPED]):
                source = target + P[SHIFT_DROPPED]
                old = base + old_pages[source // PAGE] * P[SHIFT_PAGE_BYTES]
                new = base + new_pages[target // PAGE] * P[SHIFT_PAGE_BYTES]
                load_key(old, source % PAGE, f, key, work)
                for i in range(2 * n, head_dim):
                    f[rotated + i] = f[key + i]
                for i in range(n):
                    a, b = (2 * i, 2 * i + 1) if pairs else (i, i + n)
                    f[rotated + a] = f[key + a] * f[i] - f[key + b] * f[n + i]
                    f[rotated + b] = f[key + a] * f[n + i] + f[key + b] * f[i]
                store_key(new, target % PAGE, f, rotated, work)
                copy_value(old, source % PAGE, new, target % PAGE)

    return shift
