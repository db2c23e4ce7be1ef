"""Causal attention over paged keys and values.

**Order.** A score is one chain of FMAs over the head's columns, times the scale. Softmax: the largest score; e^(score
- largest) summed in 16 lanes (lane = position mod 16, ascending), the lanes by the fixed tree. An output is one chain
of FMAs over ascending positions, times 1 / sum. None of this depends on the batch: one query alone, a group of heads
that share their keys and a tile of 8 queries have the same bits.

Three ways through the same sums: `attention_scores` and `attention` share one query among all threads; in larger
batches a thread takes (run of rows, kv head) from a counter, a group of heads at a time for single rows, 8 rows at a
time for runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from modelc.kernels.elementary import exp
from modelc.kernels.env import (
    CHUNK,
    CONTROL,
    FLOATS,
    KV,
    KV_BYTES,
    N_ROWS,
    N_UNITS,
    PAGE,
    PAGE_BYTES,
    PAGES,
    PAGES_PER_SLOT,
    POSITIONS,
    SCRATCH,
    SCRATCH_FLOATS,
    SLOTS,
    UNITS,
)
from modelc.kernels.jit import kernel
from modelc.kernels.pointers import f32_of_bits, f32_ptr, i64_ptr, u8_ptr
from modelc.kernels.simd import (
    fma,
    load_f16,
    load_f32,
    max_lanes,
    maximum,
    prefetch,
    splat_at,
    splat_f32,
    splat_zero,
    store_f32,
    sum_lanes,
    tile_f32,
)
from modelc.kernels.split import split
from modelc.kernels.sync import atomic_add

f32 = np.float32
CHUNKS = PAGE // CHUNK


def largest_divisor(n: int, limit: int) -> int:
    """The largest divisor of `n` that is at most `limit`."""
    return max(d for d in range(1, limit + 1) if n % d == 0)


def make_scores(head_dim: int, kv: str, rows: int, chunks: int) -> Any:
    """scores(q, at, ld, keys, ahead, n, scale, s, o, lds): `rows` queries with the first n keys of a page.

    Queries are q[at + u * ld]; writes s[o + u * lds + position in page] in whole steps of 16 * chunks positions.
    `ahead` is the address of the keys that are read next: they are fetched meanwhile.
    """
    load = load_f16 if kv == "f16" else load_f32
    size = KV_BYTES[kv]
    chunk_bytes = head_dim * CHUNK * size
    sums = rows * chunks
    lines = size * chunks // CHUNKS  # of 64 bytes to fetch in each step

    @kernel
    def scores(q, at, ld, keys, ahead, n, scale, s, o, lds):
        k = u8_ptr(keys)
        next_keys = u8_ptr(ahead)
        acc = tile_f32(sums)
        for c in range(0, min(CHUNKS, (n + CHUNK - 1) // CHUNK), chunks):
            for i in range(sums):
                acc[i] = splat_zero()
            for d in range(head_dim):
                for i in range(lines):
                    prefetch(next_keys, (c * head_dim // chunks * lines + d * lines + i) * 64)
                for j in range(chunks):
                    column = load(k, (c + j) * chunk_bytes + d * CHUNK * size)
                    for u in range(rows):
                        acc[j * rows + u] = fma(column, splat_at(q, at + u * ld + d), acc[j * rows + u])
            for j in range(chunks):
                for u in range(rows):
                    store_f32(s, o + u * lds + (c + j) * CHUNK, acc[j * rows + u] * splat_f32(scale))

    return scores


@kernel
def softmax(s, at, p, to, n):
    """p[to ...] = e^(s - max s) over n scores, zero up to a whole chunk; returns 1 / sum. s and p may be the same."""
    for i in range(n, (n + CHUNK - 1) // CHUNK * CHUNK):
        s[at + i] = f32(-np.inf)
    largest = load_f32(s, at)
    for i in range(CHUNK, n, CHUNK):
        largest = maximum(largest, load_f32(s, at + i))
    highest = splat_f32(max_lanes(largest))
    total = splat_zero()
    for i in range(0, n, CHUNK):
        e = exp(load_f32(s, at + i) - highest)
        total = total + e
        store_f32(p, to + i, e)
    return f32(1.0) / sum_lanes(total)


def make_weighted_sum(head_dim: int, kv: str, rows: int, vectors: int) -> Any:
    """weighted_sum(p, at, lds, table, page_bytes, base, n, y, o, ld, inverse, valid): values weighted by rows of p.

    Writes 16 * vectors columns of the rows u < valid, over n positions. `table` are the sequence's page numbers,
    `base` the address of the wanted values' first column in page 0.
    """
    load = load_f16 if kv == "f16" else load_f32
    row_bytes = head_dim * KV_BYTES[kv]
    step = CHUNK * KV_BYTES[kv]
    sums = rows * vectors
    lines = (vectors * step + 63) // 64

    @kernel
    def weighted_sum(p, at, lds, table, page_bytes, base, n, y, o, ld, inverse, valid):
        acc = tile_f32(sums)
        for i in range(sums):
            acc[i] = splat_zero()
        for first in range(0, n, PAGE):
            v = u8_ptr(base + table[first // PAGE] * page_bytes)
            ahead = u8_ptr(base + table[min(first + PAGE, n - 1) // PAGE] * page_bytes)
            for i in range(min(PAGE, n - first)):
                for line in range(lines):
                    prefetch(ahead, i * row_bytes + line * 64)
                for j in range(vectors):
                    value = load(v, i * row_bytes + j * step)
                    for u in range(rows):
                        acc[u * vectors + j] = fma(value, splat_at(p, at + u * lds + first + i), acc[u * vectors + j])
        for u in range(rows):
            if u < valid:
                for j in range(vectors):
                    store_f32(y, o + u * ld + CHUNK * j, acc[u * vectors + j] * inverse[u])

    return weighted_sum


def make_attention_scores(head_dim: int, group: int, kv: str) -> Any:
    """Opcode of one-row batches: scores of all heads; threads share (kv head, page). Nothing happens in larger batches.

    I: 2 q, 3 its row stride, 4 heads, 5 kv heads, 6 layer's byte offset in a page, 7 scale (bits), 8 scores, 9 their
    stride from head to head.
    """
    rows = largest_divisor(group, 8)
    scores = make_scores(head_dim, kv, rows, 4 if rows <= 4 else 2)
    head_bytes = 2 * PAGE * head_dim * KV_BYTES[kv]

    @kernel
    def attention_scores(I, E, tid, nth):
        if E[N_ROWS] > 1:
            return
        f = f32_ptr(E[FLOATS])
        table = i64_ptr(E[PAGES] + i64_ptr(E[SLOTS])[0] * E[PAGES_PER_SLOT] * 8)
        pages = i64_ptr(E[POSITIONS])[0] // PAGE + 1
        scale = f32_of_bits(I[7])
        start, stop = split(I[5] * pages, tid, nth)
        for unit in range(start, stop):
            head, page = unit // pages, unit % pages
            keys = E[KV] + table[page] * E[PAGE_BYTES] + I[6] + head * head_bytes
            following = unit + 1
            ahead = E[KV] + table[following % pages] * E[PAGE_BYTES] + I[6] + following // pages * head_bytes
            for u in range(head * group, (head + 1) * group, rows):
                scores(
                    f, I[2] + u * head_dim, head_dim, keys, ahead, PAGE, scale, f, I[8] + u * I[9] + page * PAGE, I[9]
                )

    return attention_scores


def make_attention(head_dim: int, group: int, kv: str) -> Any:
    """Opcode: softmax(q k / scale) v for all rows.

    I: 2 to 9 as `attention_scores`, 10 out, 11 its row stride, 12 counter in CONTROL.
    SCRATCH: 8 rows of scores for each thread.
    """
    rows = largest_divisor(group, 8)
    vectors = head_dim // CHUNK
    narrow = largest_divisor(vectors, max(1, min(2, vectors // 2)))
    wide = largest_divisor(vectors, max(1, 16 // rows))
    run_vectors = largest_divisor(vectors, 2)
    group_scores = make_scores(head_dim, kv, rows, 4 if rows <= 4 else 2)
    run_scores = make_scores(head_dim, kv, 8, 2)
    narrow_sum = make_weighted_sum(head_dim, kv, rows, narrow)
    wide_sum = make_weighted_sum(head_dim, kv, rows, wide)
    run_sum = make_weighted_sum(head_dim, kv, 8, run_vectors)
    size = KV_BYTES[kv]
    value_bytes = PAGE * head_dim * size
    slabs = vectors // narrow
    slab_bytes = narrow * CHUNK * size

    @kernel
    def one_row(I, E, tid, nth):
        """The scores are there; threads share (kv head, slab of columns)."""
        f = f32_ptr(E[FLOATS])
        p = f32_ptr(E[SCRATCH] + tid * E[SCRATCH_FLOATS] * 4)
        ld = E[SCRATCH_FLOATS] // 8
        table = i64_ptr(E[PAGES] + i64_ptr(E[SLOTS])[0] * E[PAGES_PER_SLOT] * 8)
        n = i64_ptr(E[POSITIONS])[0] + 1
        inverse = tile_f32(8)
        start, stop = split(I[5] * slabs, tid, nth)
        for head in range(start // slabs, (stop + slabs - 1) // slabs):
            first = max(start - head * slabs, 0)
            last = min(stop - head * slabs, slabs)
            base = E[KV] + I[6] + head * 2 * value_bytes + value_bytes
            for h in range(head * group, (head + 1) * group, rows):
                for u in range(rows):
                    inverse[u] = splat_f32(softmax(f, I[8] + (h + u) * I[9], p, u * ld, n))
                out = I[10] + h * head_dim
                if first == 0 and last == slabs:
                    for j in range(0, vectors, wide):
                        at = base + j * CHUNK * size
                        wide_sum(p, 0, ld, table, E[PAGE_BYTES], at, n, f, out + j * CHUNK, head_dim, inverse, rows)
                else:
                    for j in range(first, last):
                        at = base + j * slab_bytes
                        narrow_sum(
                            p, 0, ld, table, E[PAGE_BYTES], at, n, f, out + j * narrow * CHUNK, head_dim, inverse, rows
                        )

    @kernel
    def single(I, E, s, t, head):
        """One row of a larger batch, the heads of one kv head."""
        f = f32_ptr(E[FLOATS])
        ld = E[SCRATCH_FLOATS] // 8
        table = i64_ptr(E[PAGES] + i64_ptr(E[SLOTS])[t] * E[PAGES_PER_SLOT] * 8)
        n = i64_ptr(E[POSITIONS])[t] + 1
        base = E[KV] + I[6] + head * 2 * value_bytes
        inverse = tile_f32(8)
        scale = f32_of_bits(I[7])
        for h in range(head * group, (head + 1) * group, rows):
            q = I[2] + t * I[3] + h * head_dim
            pages = (n + PAGE - 1) // PAGE
            for page in range(pages):
                keys = base + table[page] * E[PAGE_BYTES]
                ahead = base + table[min(page + 1, pages - 1)] * E[PAGE_BYTES]
                group_scores(f, q, head_dim, keys, ahead, n - page * PAGE, scale, s, page * PAGE, ld)
            for u in range(rows):
                inverse[u] = splat_f32(softmax(s, u * ld, s, u * ld, n))
            out = I[10] + t * I[11] + h * head_dim
            for j in range(0, vectors, wide):
                at = base + value_bytes + j * CHUNK * size
                wide_sum(s, 0, ld, table, E[PAGE_BYTES], at, n, f, out + j * CHUNK, head_dim, inverse, rows)

    @kernel
    def run(I, E, s, t, count, head):
        """Up to 8 consecutive positions of a sequence, the heads of one kv head one after the other."""
        f = f32_ptr(E[FLOATS])
        ld = E[SCRATCH_FLOATS] // 8
        table = i64_ptr(E[PAGES] + i64_ptr(E[SLOTS])[t] * E[PAGES_PER_SLOT] * 8)
        n = i64_ptr(E[POSITIONS])[t] + 1
        last = n + count - 1
        base = E[KV] + I[6] + head * 2 * value_bytes
        inverse = tile_f32(8)
        scale = f32_of_bits(I[7])
        for h in range(head * group, (head + 1) * group):
            q = I[2] + t * I[3] + h * head_dim
            pages = (last + PAGE - 1) // PAGE
            for page in range(pages):
                keys = base + table[page] * E[PAGE_BYTES]
                ahead = base + table[min(page + 1, pages - 1)] * E[PAGE_BYTES]
                run_scores(f, q, I[3], keys, ahead, last - page * PAGE, scale, s, page * PAGE, ld)
            for u in range(8):
                if u < count:
                    inverse[u] = splat_f32(softmax(s, u * ld, s, u * ld, n + u))
                    for i in range((n + u + CHUNK - 1) // CHUNK * CHUNK, last):
                        s[u * ld + i] = f32(0.0)
            out = I[10] + t * I[11] + h * head_dim
            for j in range(0, vectors, run_vectors):
                at = base + value_bytes + j * CHUNK * size
                run_sum(s, 0, ld, table, E[PAGE_BYTES], at, last, f, out + j * CHUNK, I[11], inverse, count)

    @kernel
    def attention(I, E, tid, nth):
        if E[N_ROWS] == 1:
            one_row(I, E, tid, nth)
            return
        control = i64_ptr(E[CONTROL])
        units = i64_ptr(E[UNITS])
        s = f32_ptr(E[SCRATCH] + tid * E[SCRATCH_FLOATS] * 4)
        total = I[5] * E[N_UNITS]
        taken = atomic_add(control, I[12], 1)
        while taken < total:
            unit = E[N_UNITS] - 1 - taken // I[5]  # the last rows of a prompt see the most keys: they go first
            head = taken % I[5]
            t = units[2 * unit]
            count = units[2 * unit + 1]
            if count == 1:
                single(I, E, s, t, head)
            else:
                run(I, E, s, t, count, head)
            taken = atomic_add(control, I[12], 1)

    return attention
