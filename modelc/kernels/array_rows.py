"""Softmax and normalisation of the rows of float32 matrices.

**Order** of every sum: lane i takes columns i, i + 16, ...; the lanes are added by the fixed tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from modelc.kernels.jit import kernel
from modelc.kernels.lanes import keep_first, load_first, store_first
from modelc.kernels.pointers import f32_of_bits, f32_ptr
from modelc.kernels.simd import fma, load_f32, max_lanes, maximum, splat_f32, splat_zero, store_f32, sum_lanes
from modelc.kernels.special_functions import exp, log
from modelc.kernels.split import split

f32 = np.float32


def make_array_softmax(kind: str) -> Any:
    """Opcode: rows of e^x / sum e^x (`soft`), of x - log sum e^x (`log`), or `soft` with 0 for NaN (`masked`).

    A row of only -inf gives NaN, and 0 where `masked`. I: 2 x, 3 y (addresses), 4 rows, 5 columns.
    """
    logarithm, masked = kind == "log", kind == "masked"

    @kernel
    def array_softmax(I, E, tid, nth):
        x = f32_ptr(I[2])
        y = f32_ptr(I[3])
        n = I[5]
        whole, left = n // 16 * 16, n % 16
        first, stop = split(I[4], tid, nth)
        lowest = splat_f32(f32(-np.inf))
        for row in range(first, stop):
            p = row * n
            most = lowest
            for i in range(0, whole, 16):
                most = maximum(load_f32(x, p + i), most)
            if left:
                most = maximum(keep_first(load_first(x, p + whole, left), left, lowest), most)
            shift = splat_f32(max_lanes(most))
            total = splat_zero()
            for i in range(0, whole, 16):
                e = exp(load_f32(x, p + i) - shift)
                total = total + e
                if not logarithm:
                    store_f32(y, p + i, e)
            if left:
                e = keep_first(exp(load_first(x, p + whole, left) - shift), left, splat_zero())
                total = total + e
                if not logarithm:
                    store_first(y, p + whole, e, left)
            total = splat_f32(sum_lanes(total))
            if logarithm:
                subtracted = log(total)
                for i in range(0, whole, 16):
                    store_f32(y, p + i, load_f32(x, p + i) - shift - subtracted)
                if left:
                    store_first(y, p + whole, load_first(x, p + whole, left) - shift - subtracted, left)
            else:
                factor = splat_f32(f32(1.0)) / total
                if masked and not sum_lanes(total) > f32(0.0):
                    for i in range(n):
                        y[p + i] = f32(0.0)
                else:
                    for i in range(0, whole, 16):
                        store_f32(y, p + i, load_f32(y, p + i) * factor)
                    if left:
                        store_first(y, p + whole, load_first(y, p + whole, left) * factor, left)

    return array_softmax


def make_array_norm(kind: str) -> Any:
    """Opcode: rows of (x - mean) / sqrt(variance + eps) (`layer`) or x / sqrt(mean of x^2 + eps) (`rms`).

    I: 2 x, 3 y (addresses), 4 rows, 5 columns, 6 weight (columns,) or 0, 7 bias (columns,) or 0, 8 eps (float32 bits),
    9 means (rows,) or 0, 10 inverse deviations (rows,) or 0, 11 a second addend of x, also written to 12, or 0.
    """
    layer = kind == "layer"

    @kernel
    def array_norm(I, E, tid, nth):
        x = f32_ptr(I[2])
        y = f32_ptr(I[3])
        weight = f32_ptr(I[6])
        bias = f32_ptr(I[7])
        n = I[5]
        count = f32(n)
        eps = f32_of_bits(I[8])
        means = f32_ptr(I[9])
        deviations = f32_ptr(I[10])
        first, stop = split(I[4], tid, nth)
        for row in range(first, stop):
            p = row * n
            if I[11] != 0:
                other = f32_ptr(I[11])
                summed = f32_ptr(I[12])
                for i in range(0, n, 16):
                    left = min(n - i, 16)
                    store_first(summed, p + i, load_first(x, p + i, left) + load_first(other, p + i, left), left)
            source = f32_ptr(I[12]) if I[11] != 0 else x
            mean = f32(0.0)
            if layer:
                total = splat_zero()
                for i in range(0, n, 16):
                    total = total + load_first(source, p + i, min(n - i, 16))
                mean = sum_lanes(total) / count
            squares = splat_zero()
            for i in range(0, n, 16):
                left = min(n - i, 16)
                d = load_first(source, p + i, left) - splat_f32(mean)
                if left < 16:
                    d = keep_first(d, left, splat_zero())
                squares = fma(d, d, squares)
            scale = f32(1.0) / np.sqrt(sum_lanes(squares) / count + eps)
            if I[9] != 0:
                means[row] = mean
            if I[10] != 0:
                deviations[row] = scale
            for i in range(0, n, 16):
                left = min(n - i, 16)
                v = (load_first(source, p + i, left) - splat_f32(mean)) * splat_f32(scale)
                if I[6] != 0:
                    v = v * load_first(weight, i, left)
                if I[7] != 0:
                    v = v + load_first(bias, i, left)
                store_first(y, p + i, v, left)

    return array_norm
