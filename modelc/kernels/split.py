"""How threads divide work: over rows, row groups, heads; never over a sum."""

from __future__ import annotations

from modelc.kernels.env import N_ROWS
from modelc.kernels.jit import kernel

ROW_STEP = 4  # rows of a panel that fill whole cache lines, so that no line is written by two threads


@kernel
def split(n, tid, nth):
    """Share `tid` of `nth` of range(n), as (start, stop)."""
    return n * tid // nth, n * (tid + 1) // nth


@kernel
def split_groups(n, tid, nth):
    """Groups of 16 columns of thread `tid` of `n`, in pairs: a block of 32 columns belongs to one thread."""
    pairs = (n + 1) // 2
    return pairs * tid // nth * 2, min(n, pairs * (tid + 1) // nth * 2)


@kernel
def split_rows(E, n, tid, nth):
    """Rows of thread `tid` of `n`; of a one-row batch every thread computes its own copy, cheaper than a barrier."""
    if E[N_ROWS] == 1:
        return 0, 1
    steps = (n + ROW_STEP - 1) // ROW_STEP
    return steps * tid // nth * ROW_STEP, min(n, steps * (tid + 1) // nth * ROW_STEP)


@kernel
def private_row(E, tid):
    """First row of a private buffer that thread `tid` uses: its own copy in a one-row batch, else row 0."""
    return tid if E[N_ROWS] == 1 else 0
