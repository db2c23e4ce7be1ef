"""How threads share arrays of up to six dimensions: pieces of rows, and where a row begins in two strided arrays.

`sizes` is int64 (3, 6): sizes, outermost first, then the strides of either array.
"""

from __future__ import annotations

from modelc.kernels.jit import inlined

CHUNK = 4096  # elements that one thread takes at a time
DIMS = 6


@inlined
def count_rows(sizes):
    """Rows: the product of all sizes but the last."""
    rows = 1
    for d in range(DIMS - 1):
        rows *= sizes[d]
    return rows


@inlined
def row_places(sizes, row):
    """Where row number `row` begins in the first array and in the second."""
    a, b = 0, 0
    for d in range(DIMS - 2, -1, -1):
        index = row % sizes[d]
        row //= sizes[d]
        a += index * sizes[DIMS + d]
        b += index * sizes[2 * DIMS + d]
    return a, b
