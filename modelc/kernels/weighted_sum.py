"""Values of a sequence weighted by the softmax of its scores.

**Order.** One chain of FMAs over ascending positions, times 1 / sum of the weights. int8: the chain runs over the
codes as float32, with weights that were multiplied by the positions' value scales before.
"""

from __future__ import annotations

from typing import Any

from modelc.kernels.blend import blend
from modelc.kernels.env import CHUNK, PAGE
from modelc.kernels.jit import inlined, kernel
from modelc.kernels.kv_pages import ELEMENT_BYTES, PAGES_AHEAD, Form, forms
from modelc.kernels.kv_vectors import LOADS
from modelc.kernels.pointers import f32_ptr, u8_ptr
from modelc.kernels.simd import fma, load_f32, prefetch, splat_at, splat_zero, store_f32, tile_f32


def make_scale_weights(head_dim: int, kv: str) -> Any:
    """scale_weights(p, at, n, table, page_bytes, base, cold): p[at ...], n weights, times the scales of their values.

    Only weights of values that are read as codes change: all of `int8`, those of positions below `cold` of `mixed`.
    """
    form = forms(head_dim, kv)[0]
    scales_at = form.value_scales
    coded, mixed = form.dtype == "int8", kv == "mixed"

    @kernel
    def scale_weights(p, at, n, table, page_bytes, base, cold):
        if not coded:
            return
        stop = min(n, cold) if mixed else n
        for first in range(0, stop, PAGE):
            scales = f32_ptr(base + table[first // PAGE] * page_bytes + scales_at)
            for i in range(0, min(PAGE, stop - first), CHUNK):
                weights = load_f32(p, at + first + i)
                scaled = weights * load_f32(scales, i)
                if mixed:
                    scaled = blend(stop - first - i, scaled, weights)
                store_f32(p, at + first + i, scaled)

    return scale_weights


def make_weighted_sum(head_dim: int, kv: str, rows: int, vectors: int, step: int) -> Any:
    """weighted_sum(p, at, lds, table, page_bytes, base, j, n, cold, y, o, ld, inverse, valid).

    Values weighted by rows of p, whose weights have their scales: 16 * vectors columns from column 16 * j on of the
    rows u < valid, over n positions. `table` are the sequence's page numbers, `base` the address of the head's part of
    page 0. `mixed`: row u reads codes at positions below cold + u * step, and float32 from there on.
    """
    parts = forms(head_dim, kv)
    mixed = len(parts) == 2
    add_first = _make_add(head_dim, parts[0], rows, vectors)
    add_last = _make_add(head_dim, parts[-1], rows, vectors)
    add_either = _make_add_either(head_dim, parts[0], parts[-1], rows, vectors, step)
    sums = rows * vectors
    spread = (rows - 1) * step
    boundaries_differ = spread > 0

    @kernel
    def weighted_sum(p, at, lds, table, page_bytes, base, j, n, cold, y, o, ld, inverse, valid):
        acc = tile_f32(sums)
        for i in range(sums):
            acc[i] = splat_zero()
        if mixed:
            some = min(max(cold, 0), n)
            every = min(max(cold + spread, 0), n)
            add_first(acc, p, at, lds, table, page_bytes, base, j, 0, some)
            if boundaries_differ:
                add_either(acc, p, at, lds, table, page_bytes, base, j, some, every, cold)
            add_last(acc, p, at, lds, table, page_bytes, base, j, every, n)
        else:
            add_first(acc, p, at, lds, table, page_bytes, base, j, 0, n)
        for u in range(rows):
            if u < valid:
                for v in range(vectors):
                    store_f32(y, o + u * ld + CHUNK * v, acc[u * vectors + v] * inverse[u])

    return weighted_sum


def _make_add(head_dim: int, form: Form, rows: int, vectors: int) -> Any:
    """add(acc, ..., start, stop): goes on with the sums over positions start ... stop, all in one form."""
    load, size, values_at = LOADS[form.dtype], ELEMENT_BYTES[form.dtype], form.values
    row_bytes = head_dim * size
    vector_bytes = CHUNK * size
    lines = (vectors * vector_bytes + 63) // 64
    distance = PAGES_AHEAD[form.dtype] * PAGE

    @inlined
    def add(acc, p, at, lds, table, page_bytes, base, j, start, stop):
        column = base + values_at + j * vector_bytes
        for first in range(start // PAGE * PAGE, stop, PAGE):
            values = u8_ptr(column + table[first // PAGE] * page_bytes)
            ahead = u8_ptr(column + table[min(first + distance, stop - 1) // PAGE] * page_bytes)
            for i in range(max(start - first, 0), min(PAGE, stop - first)):
                for line in range(lines):
                    prefetch(ahead, i * row_bytes + line * 64)
                for v in range(vectors):
                    value = load(values, i * row_bytes + v * vector_bytes)
                    for u in range(rows):
                        acc[u * vectors + v] = fma(value, splat_at(p, at + u * lds + first + i), acc[u * vectors + v])

    return add


def _make_add_either(head_dim: int, codes: Form, floats: Form, rows: int, vectors: int, step: int) -> Any:
    """add_either(acc, ..., start, stop, cold): as add, codes or floats as each row's boundary says."""
    load_code, load_float = LOADS[codes.dtype], LOADS[floats.dtype]
    codes_at, floats_at = codes.values, floats.values

    @inlined
    def add_either(acc, p, at, lds, table, page_bytes, base, j, start, stop, cold):
        for i in range(start, stop):
            head = base + table[i // PAGE] * page_bytes
            row = i % PAGE * head_dim
            for v in range(vectors):
                code = load_code(u8_ptr(head + codes_at), row + (j + v) * CHUNK)
                exact = load_float(f32_ptr(head + floats_at), row + (j + v) * CHUNK)
                for u in range(rows):
                    value = code if i < cold + u * step else exact
                    acc[u * vectors + v] = fma(value, splat_at(p, at + u * lds + i), acc[u * vectors + v])

    return add_either
