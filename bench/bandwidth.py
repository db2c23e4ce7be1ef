"""How fast this machine can read: the limit of decoding, which reads every weight for each token."""

import threading
import time

import numpy as np
from numba import njit

from modelc.kernels.pointers import u8_ptr
from modelc.kernels.simd import load_bytes, prefetch, splat_i32, sum_lanes_i32, tile_i32

STEP_BYTES = 512  # 8 loads, each to a sum of its own
PASSES = 8
AHEAD_BYTES = (0, 4096)  # software prefetch helps on some machines and costs on others: the faster counts


@njit(nogil=True)
def _read(address, n_bytes, passes, ahead):  # type: ignore[no-untyped-def]
    memory = u8_ptr(address)
    sums = tile_i32(8)
    for i in range(8):
        sums[i] = splat_i32(np.int32(0))
    for _ in range(passes):
        for at in range(0, n_bytes, 512):
            for i in range(8):
                prefetch(memory, at + ahead + 64 * i)
                sums[i] = sums[i] + load_bytes(memory, at + 64 * i)
    total = sums[0]
    for i in range(1, 8):
        total = total + sums[i]
    return sum_lanes_i32(total)


def read_bytes_per_second(address: int, n_bytes: int, n_threads: int) -> float:
    """Read memory several times over with `n_threads` threads, each its own part of it; bytes per second of all.

    Args:
        address: of the first byte.
        n_bytes: how many; a rest of less than 512 a thread is left out.
        n_threads: how many threads read at the same time.
    """
    part = n_bytes // n_threads // STEP_BYTES * STEP_BYTES
    _read(address, part, 1, 0)  # compiles, and brings the pages in
    return max(_rate(address, part, n_threads, ahead) for ahead in AHEAD_BYTES)


def _rate(address: int, part: int, n_threads: int, ahead: int) -> float:
    gate = threading.Barrier(n_threads)
    spans: list[tuple[float, float]] = []

    def read(first: int) -> None:
        gate.wait()
        start = time.perf_counter()
        _read(first, part, PASSES, ahead)
        spans.append((start, time.perf_counter()))

    readers = [threading.Thread(target=read, args=(address + i * part,)) for i in range(n_threads)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    seconds = max(end for _, end in spans) - min(start for start, _ in spans)
    return PASSES * part * n_threads / seconds
