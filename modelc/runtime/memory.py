"""Working memory: zeroed, aligned to cache lines, in huge pages where the system has them, touched only when used."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
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


def physical_bytes() -> int:
    """The machine's memory, or the cgroup's limit where that is lower."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")] if hasattr(os, "sysconf") else [8 << 30]
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limits.append(int(Path(file).read_text()))
        except (OSError, ValueError):
            continue
    return min(limits)
