"""Sums over the middle dimension of float32 arrays (outer, n, inner) -> (outer, inner).

**Order**: n is taken in segments, of 4096 with inner 1, else of 256; their sums are added in ascending order. Inside a
segment with inner 1 lane i takes elements i, i + 16, ..., and the lanes are added by the fixed tree at the very end;
else it is one chain over ascending n. Shape alone decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from modelc.kernels.jit import inlined, kernel
from modelc.kernels.lanes import load_first, store_first
from modelc.kernels.pointers import f32_of_bits, f32_ptr
from modelc.kernels.simd import load_f32, splat_f32, splat_zero, sum_lanes
from modelc.kernels.special_functions import absolute
from modelc.kernels.split import split

f32 = np.float32

LONG_SEGMENT = 4096
SEGMENT = 256


@inlined
def _same(x):
    return x


@inlined
def _square(x):
    return x * x


TERMS = {"sum": _same, "squares": _square, "abs": absolute}


def make_array_reduce(kind: str) -> Any:
    """Opcode: factor * sum of x, x^2 or |x|.

    I: 2 x, 3 y (addresses), 4 outer, 5 n, 6 inner, 7 factor (float32 bits).
    """
    term = TERMS[kind]

    @kernel
    def array_reduce(I, E, tid, nth):
        x = f32_ptr(I[2])
        y = f32_ptr(I[3])
        n, inner = I[5], I[6]
        factor = f32_of_bits(I[7])
        if inner == 1:
            whole, left = n // 16 * 16, n % 16
            first, stop = split(I[4], tid, nth)
            for row in range(first, stop):
                total = splat_zero()
                for segment in range(0, whole, LONG_SEGMENT):
                    part = splat_zero()
                    for i in range(segment, min(segment + LONG_SEGMENT, whole), 16):
                        part = part + term(load_f32(x, row * n + i))
                    total = total + part
                if left:
                    total = total + term(load_first(x, row * n + whole, left))
                y[row] = sum_lanes(total) * factor
            return
        chunks = (inner + 15) // 16
        first, stop = split(I[4] * chunks, tid, nth)
        for unit in range(first, stop):
            row, j = unit // chunks, unit % chunks * 16
            left = min(inner - j, 16)
            total = splat_zero()
            for segment in range(0, n, SEGMENT):
                part = splat_zero()
                for i in range(segment, min(segment + SEGMENT, n)):
                    part = part + term(load_first(x, (row * n + i) * inner + j, left))
                total = total + part
            store_first(y, row * inner + j, total * splat_f32(factor), left)

    return array_reduce
