"""Scores of queries with a page of keys.

**Order.** f16, f32: one chain of FMAs over the head's columns, times the scale. int8: the chain runs over the codes as
float32, and is multiplied by the rounded product scale * key scale.
"""

from __future__ import annotations

from typing import Any

from modelc.kernels.blend import blend
from modelc.kernels.env import CHUNK, PAGE
from modelc.kernels.jit import kernel
from modelc.kernels.kv_pages import ELEMENT_BYTES, Form, forms
from modelc.kernels.kv_vectors import LOADS
from modelc.kernels.pointers import f32_ptr, u8_ptr
from modelc.kernels.simd import (
    fma,
    load_f32,
    prefetch,
    splat_at,
    splat_f32,
    splat_zero,
    store_f32,
    tile_f32,
)

CHUNKS = PAGE // CHUNK


def make_scores(head_dim: int, kv: str, rows: int, chunks: int, step: int) -> Any:
    """scores(q, at, ld, head, ahead, low, n, scale, s, o, lds, cold): `rows` queries with keys low .. n of a page.

    Queries are q[at + u * ld]; writes s[o + u * lds + position in page] in whole steps of 16 * chunks positions. Both
    ends may lie outside the page.
    `head` is the address of the head's part of the page, `ahead` of the one that is read next: its keys are fetched
    meanwhile. `mixed`: query u reads codes at positions in the page below cold + u * step, and float32 from there on.
    """
    codes, *exact = forms(head_dim, kv)
    of_codes = _make_scores(head_dim, codes, rows, chunks, None)
    if not exact:
        return of_codes
    of_floats = _make_scores(head_dim, exact[0], rows, 2, step)
    spread = (rows - 1) * step

    @kernel
    def scores(q, at, ld, head, ahead, low, n, scale, s, o, lds, cold):
        if cold + spread > 0:
            of_codes(q, at, ld, head, ahead, low, min(n, cold + spread), scale, s, o, lds, cold)
        if cold < n:
            of_floats(q, at, ld, head, ahead, low, n, scale, s, o, lds, cold)

    return scores


def _make_scores(head_dim: int, form: Form, rows: int, chunks: int, step: int | None) -> Any:
    """Scores from one form; with `step` only those that are read in float32: the others stay as they are."""
    load, size = LOADS[form.dtype], ELEMENT_BYTES[form.dtype]
    keys_at, scales_at = form.keys, form.key_scales
    column_bytes = CHUNK * size
    chunk_bytes = head_dim * column_bytes
    sums = rows * chunks
    fetched = column_bytes * chunks  # bytes for each column and step
    coded = form.dtype == "int8"
    partial = step is not None
    lines = (fetched + 63) // 64
    step = step or 0

    @kernel
    def scores(q, at, ld, head, ahead, low, n, scale, s, o, lds, cold):
        k = u8_ptr(head + keys_at)
        next_keys = u8_ptr(ahead + keys_at)
        scales = f32_ptr(head + scales_at)
        acc = tile_f32(sums)
        start = max(low, cold if partial else 0, 0) // (CHUNK * chunks) * chunks
        for c in range(start, min(CHUNKS, (n + CHUNK - 1) // CHUNK), chunks):
            for i in range(sums):
                acc[i] = splat_zero()
            for d in range(head_dim):
                for i in range(lines):
                    prefetch(next_keys, c * chunk_bytes + d * fetched + i * 64)
                for j in range(chunks):
                    column = load(k, (c + j) * chunk_bytes + d * column_bytes)
                    for u in range(rows):
                        acc[j * rows + u] = fma(column, splat_at(q, at + u * ld + d), acc[j * rows + u])
            for j in range(chunks):
                factor = splat_f32(scale)
                if coded:
                    factor = factor * load_f32(scales, (c + j) * CHUNK)
                for u in range(rows):
                    place = o + u * lds + (c + j) * CHUNK
                    score = acc[j * rows + u] * factor
                    if partial:
                        score = blend(cold + u * step - (c + j) * CHUNK, load_f32(s, place), score)
                    store_f32(s, place, score)

    return scores
