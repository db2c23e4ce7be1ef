"""Values of a sequence weighted by the softmax of its scores.

**Order.** One chain of FMAs over ascending positions, times 1 / sum of the weights. int8: the chain runs over the
codes as float32, with weights that were multiplied by the positions' value scales before.
"""

from __future__ import annotations

from typing import Any

from modelc.kernels.blend import blend
from modelc.kernels.env import CHUNK, PAGE
from modelc.kernels.jit import kernel
from modelc.kernels.kv_pages import ELEMENT_BYTES, PAGES_AHEAD, forms
from modelc.kernels.kv_vectors import LOADS
from modelc.kernels.pointers import f32_ptr, u8_ptr
from modelc.kernels.simd import fma, load_f32, prefetch, splat_at, splat_zero, store_f32, tile_f32


def make_scale_weights(head_dim: int, kv: str) -> Any:
    """scale_weights(p, at, low, n, table, page_bytes, base, cold): weights p[at + low .. n] times their values' scales.

    Only weights of values that are read as codes change: all of `int8`, those of positions below `cold` of `mixed`.
    """
    form = forms(head_dim, kv)[0]
    scales_at = form.value_scales
    coded, mixed = form.dtype == "int8", kv == "mixed"

    @kernel
    def scale_weights(p, at, low, n, table, page_bytes, base, cold):
        if not coded:
            return
        stop = min(n, cold) if mixed else n
        for first in range(low // PAGE * PAGE, stop, PAGE):
            scales = f32_ptr(base + table[first // PAGE] * page_bytes + scales_at)
            for i in range(max(low - first, 0) // CHUNK * CHUNK, min(PAGE, stop - first), CHUNK):
                weights = load_f32(p, at + first + i)
                scaled = weights * load_f32(scales, i)
                if mixed:
                    scaled = blend(stop - first - i, scaled, weights)
                store_f32(p, at + first + i, scaled)

    return scale_weights


def make_weighted_sum(head_dim: int, kv: str, rows: int, vectors: int, step: int) -> Any:
    """weighted_sum(p, at, lds, table, page_bytes, base, j, begin, n, cold, y, o, ld, inverse, valid, following).

    Values weighted by rows of p, whose weights have their scales: 16 * vectors columns from column 16 * j on of the
    rows u < valid, over positions begin .. n. `table` are the sequence's page numbers, `base` the address of the head's
    part of page 0. `mixed`: row u reads codes at positions below cold + u * step, and float32 from there on. While the
    last page is read, what is at the address `following` is fetched, if it is not 0.
    """
    codes, *others = forms(head_dim, kv)
    mixed = len(others) > 0
    floats = others[0] if mixed else codes
    load, size, values_at = LOADS[codes.dtype], ELEMENT_BYTES[codes.dtype], codes.values
    load_float, floats_at = LOADS[floats.dtype], floats.values
    row_bytes, vector_bytes = head_dim * size, CHUNK * size
    lines = (vectors * vector_bytes + 63) // 64
    distance = PAGES_AHEAD[codes.dtype] * PAGE
    sums = rows * vectors
    spread = (rows - 1) * step
    boundaries_differ = spread > 0

    @kernel
    def weighted_sum(p, at, lds, table, page_bytes, base, j, begin, n, cold, y, o, ld, inverse, valid, following):
        acc = tile_f32(sums)
        for i in range(sums):
            acc[i] = splat_zero()
        low = min(max(cold, begin), n) if mixed else n  # below it, all rows read codes
        column = base + values_at + j * vector_bytes
        for first in range(begin // PAGE * PAGE, low, PAGE):
            values = u8_ptr(column + table[first // PAGE] * page_bytes)
            ahead = u8_ptr(column + table[min(first + distance, low - 1) // PAGE] * page_bytes)
            if following != 0 and first + PAGE >= low:
                ahead = u8_ptr(following + j * vector_bytes)
            for i in range(max(begin - first, 0), min(PAGE, low - first)):
                for line in range(lines):
                    prefetch(ahead, i * row_bytes + line * 64)
                for v in range(vectors):
                    value = load(values, i * row_bytes + v * vector_bytes)
                    for u in range(rows):
                        acc[u * vectors + v] = fma(value, splat_at(p, at + u * lds + first + i), acc[u * vectors + v])
        if mixed:
            high = min(max(cold + spread, begin), n)  # from it on, all rows read floats
            if boundaries_differ:
                for i in range(low, high):
                    page = base + table[i // PAGE] * page_bytes
                    row = i % PAGE * head_dim + j * CHUNK
                    for v in range(vectors):
                        code = load(u8_ptr(page + values_at), row + v * CHUNK)
                        exact = load_float(f32_ptr(page + floats_at), row + v * CHUNK)
                        for u in range(rows):
                            value = code if i < cold + u * step else exact
                            acc[u * vectors + v] = fma(value, splat_at(p, at + u * lds + i), acc[u * vectors + v])
            for i in range(high, n):
                values = f32_ptr(base + table[i // PAGE] * page_bytes + floats_at)
                row = i % PAGE * head_dim + j * CHUNK
                ahead = f32_ptr(base + table[min(i + PAGE, n - 1) // PAGE] * page_bytes + floats_at)
                for v in range(vectors):
                    prefetch(ahead, row + v * CHUNK)
                    value = load_float(values, row + v * CHUNK)
                    for u in range(rows):
                        acc[u * vectors + v] = fma(value, splat_at(p, at + u * lds + i), acc[u * vectors + v])
        for u in range(rows):
            if u < valid:
                for v in range(vectors):
                    store_f32(y, o + u * ld + CHUNK * v, acc[u * vectors + v] * inverse[u])

    return weighted_sum
