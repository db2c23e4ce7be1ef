"""Gated feed-forward activations."""

from __future__ import annotations

from modelc.kernels.elementary import silu
from modelc.kernels.env import FLOATS, N_ROWS
from modelc.kernels.jit import kernel
from modelc.kernels.pointers import f32_ptr
from modelc.kernels.simd import load_f32, store_f32
from modelc.kernels.split import split, split_rows


@kernel
def swiglu(I, E, tid, nth):
    """Gate: out = silu(gate) * up.

    I: 2 gate, 3 up, 4 row stride of both, 5 groups of 16 columns, 6 out, 7 its row stride.
    """
    f = f32_ptr(E[FLOATS])
    start, stop = split_rows(E, E[N_ROWS], tid, nth)
    first, last = (0, I[5]) if E[N_ROWS] > 1 else split(I[5], tid, nth)
    for t in range(start, stop):
        gate = I[2] + t * I[4]
        up = I[3] + t * I[4]
        for g in range(first, last):
            store_f32(f, I[6] + t * I[7] + 16 * g, silu(load_f32(f, gate + 16 * g)) * load_f32(f, up + 16 * g))
