"""Giving back the memory of a mapped file's parts that have been read and copied."""

from __future__ import annotations

import mmap

import numpy as np
import numpy.typing as npt


def release_pages(stored: npt.NDArray[np.uint8]) -> None:
    """Lets the system reclaim what `stored` shows of a mapped file; read again, it comes from the file again.

    Without it, packing a model would seem to need as much memory as the whole source. Arrays that are not views of a
    mapping are left alone, and so are systems without `madvise`.
    """
    root: object = stored
    while isinstance(root, np.ndarray) and root.base is not None:
        root = root.base
    if isinstance(root, memoryview):
        root = root.obj
    if not isinstance(root, mmap.mmap) or not hasattr(mmap, "MADV_DONTNEED"):
        return
    begin = stored.ctypes.data - np.frombuffer(root, np.uint8).ctypes.data
    # Whole pages only: a neighbour's part of the first and the last may still be wanted.
    first = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
    end = (begin + stored.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if first < end:
        root.madvise(mmap.MADV_DONTNEED, first, end - first)
