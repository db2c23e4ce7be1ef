"""Working memory: zeroed, aligned to cache lines, in huge pages where the system has them, touched only when used."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

HUGE_PAGE = 2 << 20


def allocate(n: int, dtype: Any) -> np.ndarray[Any, Any]:
    """`n` zeros of `dtype`, the first at a multiple of 64 bytes; of 2 MiB when that large."""
    size = max(n, 1) * np.dtype(dtype).itemsize
    alignment = HUGE_PAGE if size >= HUGE_PAGE else 64
    pages = mmap.mmap(-1, size + alignment)
    if size >= HUGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    raw = np.frombuffer(pages, np.uint8)
    start = -raw.ctypes.data % alignment
    memory: np.ndarray[Any, Any] = raw[start : start + size].view(dtype)
    return memory[:n]
