"""Tokens in the order of their weights, taken one by one: as much of a sort as is needed.

A token comes before another when its weight is larger, or equal and its number smaller.
"""

from __future__ import annotations

from modelc.kernels.jit import kernel


@kernel
def precedes(w, a, b):
    """Whether token a comes before token b."""
    return w[a] > w[b] or (w[a] == w[b] and a < b)


@kernel
def sift(w, heap, root, n):
    """Restore the heap order (first in order at the root) below `root`."""
    while True:
        child = 2 * root + 1
        if child >= n:
            return
        if child + 1 < n and precedes(w, heap[child + 1], heap[child]):
            child += 1
        if not precedes(w, heap[child], heap[root]):
            return
        heap[root], heap[child] = heap[child], heap[root]
        root = child


@kernel
def make_heap(w, heap, n):
    """Put n tokens into heap order."""
    for root in range(n // 2 - 1, -1, -1):
        sift(w, heap, root, n)


@kernel
def take_first(w, heap, n):
    """Move the root of a heap of n to its end, and restore the order of the others."""
    heap[0], heap[n - 1] = heap[n - 1], heap[0]
    sift(w, heap, 0, n - 1)
