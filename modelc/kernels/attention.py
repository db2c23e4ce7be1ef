"""Causal attention over paged keys and values.

**Order.** A score is one chain of FMAs over the head's columns, times the scale (`scores`). Softmax: the largest score;
e^(score - largest) summed in 16 lanes (lane = position mod 16, ascending), the lanes by the fixed tree. Weights of
int8 values are then multiplied by their scales. An output is one chain of FMAs over ascending positions, times 1 / sum
(`weighted_sum`). None of this depends on the batch: one query alone, a group of heads that share their keys and a tile
of 8 queries have the same bits.

**Sliding window.** The query at position P sees positions above P - window (all with a window of 0): nothing older is
read, from its chunk of 16 on back. Sums begin with the first that is seen.

**mixed.** The query at position P reads positions above P - window in float32, older ones in int8: a position's form
follows from the query alone, and the sums go on from one form to the other.

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
from modelc.kernels.kv_pages import FORMS, PAGES_AHEAD, forms, head_bytes
from modelc.kernels.pointers import f32_of_bits, f32_ptr, i64_ptr
from modelc.kernels.scores import make_scores
from modelc.kernels.simd import load_f32, max_lanes, maximum, splat_f32, splat_zero, store_f32, sum_lanes, tile_f32
from modelc.kernels.split import split
from modelc.kernels.sync import atomic_add
from modelc.kernels.weighted_sum import make_scale_weights, make_weighted_sum

f32 = np.float32


def largest_divisor(n: int, limit: int) -> int:
    """The largest divisor of `n` that is at most `limit`."""
    return max(d for d in range(1, limit + 1) if n % d == 0)


@kernel
def first_seen(I, n):
    """The first position that the query behind n - 1 others sees."""
    return max(n - I[14], 0) if I[14] > 0 else 0


@kernel
def softmax(s, at, p, to, low, n):
    """p[to + i] = e^(s[at + i] - max s) for low <= i < n, zero in the rest of their chunks; returns 1 / sum.

    s and p may be the same.
    """
    begin = low // CHUNK * CHUNK
    for i in range(begin, low):
        s[at + i] = f32(-np.inf)
    for i in range(n, (n + CHUNK - 1) // CHUNK * CHUNK):
        s[at + i] = f32(-np.inf)
    largest = load_f32(s, at + begin)
    for i in range(begin + CHUNK, n, CHUNK):
        largest = maximum(largest, load_f32(s, at + i))
    highest = splat_f32(max_lanes(largest))
    total = splat_zero()
    for i in range(begin, n, CHUNK):
        e = exp(load_f32(s, at + i) - highest)
        total = total + e
        store_f32(p, to + i, e)
    return f32(1.0) / sum_lanes(total)


def make_attention_scores(head_dim: int, group: int, kv: str) -> Any:
    """Opcode of one-row batches: scores of all heads; threads share (kv head, page). Nothing happens in larger batches.

    I: 2 q, 3 its row stride, 4 heads, 5 kv heads, 6 layer's byte offset in a page, 7 scale (bits), 8 scores, 9 their
    stride from head to head, 13 hot window of `mixed`, 14 sliding window.
    """
    rows = largest_divisor(group, 8)
    scores = make_scores(head_dim, kv, rows, 4 if rows <= 4 else 2, 0)
    size = head_bytes(head_dim, kv)
    distance = PAGES_AHEAD[FORMS[kv][0]]

    @kernel
    def attention_scores(I, E, tid, nth):
        if E[N_ROWS] > 1:
            return
        f = f32_ptr(E[FLOATS])
        table = i64_ptr(E[PAGES] + i64_ptr(E[SLOTS])[0] * E[PAGES_PER_SLOT] * 8)
        n = i64_ptr(E[POSITIONS])[0] + 1
        low = first_seen(I, n)
        skipped = low // PAGE
        pages = (n + PAGE - 1) // PAGE - skipped
        cold = n - I[13]
        scale = f32_of_bits(I[7])
        start, stop = split(I[5] * pages, tid, nth)
        for unit in range(start, stop):
            head, page = unit // pages, skipped + unit % pages
            keys = E[KV] + table[page] * E[PAGE_BYTES] + I[6] + head * size
            following = unit + distance
            ahead = E[KV] + table[skipped + following % pages] * E[PAGE_BYTES] + I[6] + following // pages * size
            first = page * PAGE
            for u in range(head * group, (head + 1) * group, rows):
                q = I[2] + u * head_dim
                to = I[8] + u * I[9] + first
                scores(f, q, head_dim, keys, ahead, low - first, n - first, scale, f, to, I[9], cold - first)

    return attention_scores


def make_attention(head_dim: int, group: int, kv: str) -> Any:
    """Opcode: softmax(q k / scale) v for all rows.

    I: 2 to 9, 13 and 14 as `attention_scores`, 10 out, 11 its row stride, 12 counter in CONTROL.
    SCRATCH: 8 rows of scores for each thread.
    """
    rows = largest_divisor(group, 8)
    vectors = head_dim // CHUNK
    narrow = largest_divisor(vectors, max(1, min(2, vectors // 2)))
    wide = largest_divisor(vectors, max(1, 16 // rows))
    run_vectors = largest_divisor(vectors, 2)
    group_scores = make_scores(head_dim, kv, rows, 4 if rows <= 4 else 2, 0)
    run_scores = make_scores(head_dim, kv, 8, 2, 1)
    scale_weights = make_scale_weights(head_dim, kv)
    narrow_sum = make_weighted_sum(head_dim, kv, rows, narrow, 0)
    wide_sum = make_weighted_sum(head_dim, kv, rows, wide, 0)
    run_sum = make_weighted_sum(head_dim, kv, 8, run_vectors, 1)
    size = head_bytes(head_dim, kv)
    distance = PAGES_AHEAD[FORMS[kv][0]]
    form = forms(head_dim, kv)[0]
    keys_at, values_at = form.keys, form.values
    slabs = vectors // narrow

    @kernel
    def first_keys(I, E, taken):
        """Address of the keys that a larger batch's unit number `taken` reads first."""
        t = i64_ptr(E[UNITS])[2 * (E[N_UNITS] - 1 - taken // I[5])]
        page = first_seen(I, i64_ptr(E[POSITIONS])[t] + 1) // PAGE
        table = i64_ptr(E[PAGES] + i64_ptr(E[SLOTS])[t] * E[PAGES_PER_SLOT] * 8)
        return E[KV] + table[page] * E[PAGE_BYTES] + I[6] + taken % I[5] * size + keys_at

    @kernel
    def one_row(I, E, tid, nth):
        """The scores are there; threads share (kv head, slab of columns)."""
        f = f32_ptr(E[FLOATS])
        p = f32_ptr(E[SCRATCH] + tid * E[SCRATCH_FLOATS] * 4)
        ld = E[SCRATCH_FLOATS] // 8
        page_bytes = E[PAGE_BYTES]
        table = i64_ptr(E[PAGES] + i64_ptr(E[SLOTS])[0] * E[PAGES_PER_SLOT] * 8)
        n = i64_ptr(E[POSITIONS])[0] + 1
        low = first_seen(I, n)
        cold = n - I[13]
        inverse = tile_f32(8)
        start, stop = split(I[5] * slabs, tid, nth)
        for head in range(start // slabs, (stop + slabs - 1) // slabs):
            first = max(start - head * slabs, 0)
            last = min(stop - head * slabs, slabs)
            base = E[KV] + I[6] + head * size
            following = base + size + table[low // PAGE] * page_bytes + values_at
            for h in range(head * group, (head + 1) * group, rows):
                for u in range(rows):
                    inverse[u] = splat_f32(softmax(f, I[8] + (h + u) * I[9], p, u * ld, low, n))
                    scale_weights(p, u * ld, low, n, table, page_bytes, base, cold)
                out = I[10] + h * head_dim
                if first == 0 and last == slabs:
                    for j in range(0, vectors, wide):
                        to = out + j * CHUNK
                        wide_sum(
                            p,
                            0,
                            ld,
                            table,
                            page_bytes,
                            base,
                            j,
                            low,
                            n,
                            cold,
                            f,
                            to,
                            head_dim,
                            inverse,
                            rows,
                            following,
                        )
                else:
                    for j in range(first * narrow, last * narrow, narrow):
                        to = out + j * CHUNK
                        narrow_sum(
                            p,
                            0,
                            ld,
                            table,
                            page_bytes,
                            base,
                            j,
                            low,
                            n,
                            cold,
                            f,
                            to,
                            head_dim,
                            inverse,
                            rows,
                            following,
                        )

    @kernel
    def single(I, E, s, t, head, following):
        """One row of a larger batch, the heads of one kv head; at its end, keys at `following` are fetched."""
        f = f32_ptr(E[FLOATS])
        ld = E[SCRATCH_FLOATS] // 8
        page_bytes = E[PAGE_BYTES]
        table = i64_ptr(E[PAGES] + i64_ptr(E[SLOTS])[t] * E[PAGES_PER_SLOT] * 8)
        n = i64_ptr(E[POSITIONS])[t] + 1
        low = first_seen(I, n)
        cold = n - I[13]
        base = E[KV] + I[6] + head * size
        inverse = tile_f32(8)
        scale = f32_of_bits(I[7])
        pages = (n + PAGE - 1) // PAGE
        for h in range(head * group, (head + 1) * group, rows):
            q = I[2] + t * I[3] + h * head_dim
            for page in range(low // PAGE, pages):
                keys = base + table[page] * page_bytes
                ahead = base + table[min(page + distance, pages - 1)] * page_bytes
                if page == pages - 1:
                    ahead = base + table[low // PAGE] * page_bytes + values_at - keys_at
                first = page * PAGE
                group_scores(f, q, head_dim, keys, ahead, low - first, n - first, scale, s, first, ld, cold - first)
            for u in range(rows):
                inverse[u] = splat_f32(softmax(s, u * ld, s, u * ld, low, n))
                scale_weights(s, u * ld, low, n, table, page_bytes, base, cold)
            out = I[10] + t * I[11] + h * head_dim
            for j in range(0, vectors, wide):
                to = out + j * CHUNK
                wide_sum(s, 0, ld, table, page_bytes, base, j, low, n, cold, f, to, head_dim, inverse, rows, following)

    @kernel
    def run(I, E, s, t, count, head):
        """Up to 8 consecutive positions of a sequence, the heads of one kv head one after the other."""
        f = f32_ptr(E[FLOATS])
        ld = E[SCRATCH_FLOATS] // 8
        page_bytes = E[PAGE_BYTES]
        table = i64_ptr(E[PAGES] + i64_ptr(E[SLOTS])[t] * E[PAGES_PER_SLOT] * 8)
        n = i64_ptr(E[POSITIONS])[t] + 1
        last = n + count - 1
        low = first_seen(I, n)
        cold = n - I[13]
        base = E[KV] + I[6] + head * size
        inverse = tile_f32(8)
        scale = f32_of_bits(I[7])
        pages = (last + PAGE - 1) // PAGE
        for h in range(head * group, (head + 1) * group):
            q = I[2] + t * I[3] + h * head_dim
            for page in range(low // PAGE, pages):
                keys = base + table[page] * page_bytes
                ahead = base + table[min(page + distance, pages - 1)] * page_bytes
                first = page * PAGE
                run_scores(f, q, I[3], keys, ahead, low - first, last - first, scale, s, first, ld, cold - first)
            for u in range(8):
                if u < count:
                    own = first_seen(I, n + u)
                    inverse[u] = splat_f32(softmax(s, u * ld, s, u * ld, own, n + u))
                    scale_weights(s, u * ld, own, n + u, table, page_bytes, base, cold + u)
                    for i in range(low, own // CHUNK * CHUNK):
                        s[u * ld + i] = f32(0.0)
                    for i in range((n + u + CHUNK - 1) // CHUNK * CHUNK, last):
                        s[u * ld + i] = f32(0.0)
            out = I[10] + t * I[11] + h * head_dim
            for j in range(0, vectors, run_vectors):
                to = out + j * CHUNK
                run_sum(s, 0, ld, table, page_bytes, base, j, low, last, cold, f, to, I[11], inverse, count, 0)

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
                single(I, E, s, t, head, first_keys(I, E, min(taken + 1, total - 1)))
            else:
                run(I, E, s, t, count, head)
            taken = atomic_add(control, I[12], 1)

    return attention
