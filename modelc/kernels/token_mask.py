"""Forbidding tokens: those whose bit is 0 get a logit of minus infinity."""

from __future__ import annotations

import numpy as np

from modelc.kernels.jit import kernel
from modelc.kernels.pointers import i32_ptr
from modelc.kernels.simd import splat_f32, store_f32

f32 = np.float32
i32 = np.int32

WORD_BITS = 32


@kernel
def apply_mask(mask, w, n):
    """mask int32 (ceil(n / 32),), a bit a token -> w (n,) f32, padded to a multiple of 32, changed in place."""
    words = i32_ptr(mask)
    forbidden = splat_f32(f32(-np.inf))
    for i in range((n + WORD_BITS - 1) // WORD_BITS):
        word = words[i]
        if word == i32(0):  # most words of a strict mask
            store_f32(w, WORD_BITS * i, forbidden)
            store_f32(w, WORD_BITS * i + 16, forbidden)
        elif word != i32(-1):  # most words of a mask that allows any text
            for bit in range(WORD_BITS):
                if (word >> i32(bit)) & i32(1) == i32(0):
                    w[WORD_BITS * i + bit] = f32(-np.inf)
