"""Keys and values of a batch's rows into their pages."""

from __future__ import annotations

from typing import Any

from modelc.kernels.env import (
    FLOATS,
    KV,
    N_ROWS,
    PAGE,
    PAGE_BYTES,
    PAGES,
    PAGES_PER_SLOT,
    POSITIONS,
    SCRATCH,
    SCRATCH_FLOATS,
    SLOTS,
)
from modelc.kernels.jit import kernel
from modelc.kernels.kv_pages import head_bytes
from modelc.kernels.kv_vectors import make_store_key, make_store_value
from modelc.kernels.pointers import f32_ptr, i64_ptr
from modelc.kernels.split import split, split_rows


def make_kv_write(head_dim: int, kv: str) -> Any:
    """Opcode: keys and values of the batch's rows into their pages (see `kv_pages`).

    I: 2 keys, 3 row stride of keys and values, 4 kv heads, 5 values, 6 the layer's byte offset in a page.
    """
    size = head_bytes(head_dim, kv)
    store_key = make_store_key(head_dim, kv)
    store_value = make_store_value(head_dim, kv)

    @kernel
    def kv_write(I, E, tid, nth):
        f = f32_ptr(E[FLOATS])
        positions = i64_ptr(E[POSITIONS])
        slots = i64_ptr(E[SLOTS])
        pages = i64_ptr(E[PAGES])
        work = E[SCRATCH] + tid * E[SCRATCH_FLOATS] * 4
        start, stop = split_rows(E, E[N_ROWS], tid, nth)
        first, last = (0, I[4]) if E[N_ROWS] > 1 else split(I[4], tid, nth)
        for t in range(start, stop):
            position = positions[t]
            page = pages[slots[t] * E[PAGES_PER_SLOT] + position // PAGE]
            at = position % PAGE
            for h in range(first, last):
                head = E[KV] + page * E[PAGE_BYTES] + I[6] + h * size
                store_key(head, at, f, I[2] + t * I[3] + h * head_dim, work)
                store_value(head, at, f, I[5] + t * I[3] + h * head_dim, work)

    return kv_write
