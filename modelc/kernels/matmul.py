"""The matmul opcode: W (rows, cols) in stored layout @ activations -> FLOATS (tokens, rows) f32."""

from __future__ import annotations

from typing import Any

from modelc.kernels.activations import panel_row
from modelc.kernels.env import FLOATS, N_OUT, N_ROWS, PANEL, QUANTS, RECORD_BYTES, WEIGHTS
from modelc.kernels.jit import kernel
from modelc.kernels.pointers import f32_ptr, u8_ptr
from modelc.kernels.registers import holds_32_vectors
from modelc.kernels.split import private_row, split_groups
from modelc.kernels.tiles import make_block_tile, make_float_tile
from modelc.kernels.weights import BLOCK_FORMATS, FLOAT_FORMATS

AHEAD = 8192  # bytes of software prefetch: decode 1.05 times as fast as with 4 KB, 16 KB 0.97 times (Zen 5)
CACHED_BYTES = 128 * 1024  # of weights that stay in the L2 cache while many tokens pass over them
FEW_ROWS = 32  # so many tokens pass over two groups of rows at a time, and fetch the next two meanwhile


@kernel
def schedule(n, tile, group, lines):
    """How n > 1 tokens pass over the row groups, the next ones' weights being fetched meanwhile.

    Returns the groups that all tokens pass over before the next ones, the passes of `tile` tokens, and how many of the
    `lines` that a pair of groups has for each block are prefetched in a pass.
    """
    passes = (n + tile - 1) // tile
    groups = 2 if n <= FEW_ROWS else max(2, CACHED_BYTES // group // 2 * 2)
    return groups, passes, (lines + passes - 1) // passes


def make_matmul(dtype: str, activation: str = "f32") -> Any:
    """Opcode: one weight tensor times the batch's rows.

    I: 2 weight byte offset, 3 columns, 4 row groups of 16, 5 activations (byte in QUANTS, or float index in FLOATS
        for float weights), 6 output float index, 7 output row stride, 8 1 = only the rows whose logits are wanted;
        for float weights also 9 1 = the activations are private rows in a one-row batch, 10 their row stride.
    """
    return _make_float_matmul(dtype) if dtype in FLOAT_FORMATS else _make_block_matmul(dtype, activation)


def make_matmul_add(dtype: str) -> Any:
    """Opcode: as `make_matmul` for float weights, but the product is added, as a whole, to what the output holds."""
    return _make_float_matmul(dtype, adds=True)


def _make_block_matmul(dtype: str, activation: str) -> Any:
    form = BLOCK_FORMATS[dtype]
    blocks, record_bytes = form.blocks, form.record_bytes
    activation_bytes = RECORD_BYTES[activation]
    tile4x2 = make_block_tile(dtype, activation, 4, 2)
    tile4 = make_block_tile(dtype, activation, 4, 1)
    tile1 = make_block_tile(dtype, activation, 1, 1)

    @kernel
    def matmul(I, E, tid, nth):
        w = u8_ptr(E[WEIGHTS])
        x = u8_ptr(E[QUANTS])
        y = f32_ptr(E[FLOATS])
        nb = I[3] // 32
        group = nb // blocks * record_bytes
        lines = (record_bytes // blocks + 63) // 64
        ld = I[7]
        n = E[N_ROWS]
        start, stop = split_groups(I[4], tid, nth)
        if n == 1:
            q = panel_row(I[5], I[9] * private_row(E, tid) * PANEL, nb, activation_bytes)
            for g in range(start, stop):
                p = I[2] + g * group
                tile1(w, p, group, nb, p + AHEAD, lines, x, q, y, I[6] + g * 16, ld, 1)
            return
        if I[8]:
            n = E[N_OUT]
        step, passes, lines = schedule(n, 4, group, 2 * lines)
        for first in range(start, stop, step):
            last = min(stop, first + step)
            for t in range(0, n, 4):
                q = panel_row(I[5], t, nb, activation_bytes)
                soon = step * group + t // 4 * (2 * group // passes)
                valid = n - t
                g = first
                while g < last:
                    p = I[2] + g * group
                    o = I[6] + t * ld + g * 16
                    if valid == 1:
                        tile1(w, p, group, nb, p + soon, lines, x, q, y, o, ld, 1)
                        g += 1
                    elif g + 2 <= last and holds_32_vectors():
                        tile4x2(w, p, group, nb, p + soon, lines, x, q, y, o, ld, valid)
                        g += 2
                    else:
                        tile4(w, p, group, nb, p + soon, lines, x, q, y, o, ld, valid)
                        g += 1

    return matmul


def _make_float_matmul(dtype: str, adds: bool = False) -> Any:
    column_bytes = FLOAT_FORMATS[dtype][1]
    tile8x2 = make_float_tile(dtype, 8, 2, adds)
    tile8 = make_float_tile(dtype, 8, 1, adds)
    tile1x2 = make_float_tile(dtype, 1, 2, adds)  # 4 groups read more streams at once: 0.93 of the speed from L3
    tile1 = make_float_tile(dtype, 1, 1, adds)

    @kernel
    def matmul(I, E, tid, nth):
        w = u8_ptr(E[WEIGHTS])
        f = f32_ptr(E[FLOATS])
        cols = I[3]
        group = cols * column_bytes
        ld = I[7]
        n = E[N_ROWS]
        start, stop = split_groups(I[4], tid, nth)
        ldx = I[10]
        q = I[5] + (tid * ldx if n == 1 and I[9] else 0)
        if n > 1 and I[8]:
            n = E[N_OUT]
        step, passes, _ = schedule(n, 8, group, 1)
        if n <= 2:
            step = 4
        stride = 2 * column_bytes // passes
        for first in range(start, stop, step):
            last = min(stop, first + step)
            for t in range(0, n, 8):
                xt = q + t * ldx
                left = n - t
                soon = step * group + t // 8 * (stride * cols)
                g = first
                while g < last:
                    p = I[2] + g * group
                    o = I[6] + t * ld + g * 16
                    if left > 2 and g + 2 <= last:
                        tile8x2(w, p, group, cols, p + soon, stride, 64, f, xt, ldx, f, o, ld, left)
                        g += 2
                    elif left > 2:
                        tile8(w, p, group, cols, p + soon, stride, 64, f, xt, ldx, f, o, ld, left)
                        g += 1
                    elif g + 2 <= last:
                        ahead = p + AHEAD
                        for u in range(left):
                            x, to = xt + u * ldx, o + u * ld
                            tile1x2(w, p, group, cols, ahead, column_bytes, group, f, x, ldx, f, to, ld, 1)
                        g += 2
                    else:
                        ahead = p + AHEAD
                        for u in range(left):
                            x, to = xt + u * ldx, o + u * ld
                            tile1(w, p, group, cols, ahead, column_bytes, group, f, x, ldx, f, to, ld, 1)
                        g += 1

    return matmul
