"""Products of float32 matrices that lie anywhere in memory: A (m, k) rows @ B (k, n) panels -> C (m, n) rows.

A panel is 16 columns of B: k vectors of 16 floats, the last panel padded with zeros.

**Order** of one element: k is taken in segments of 512; inside a segment one chain of FMAs over ascending k; the
segments' sums are added in ascending order, then the old value (where asked for), then the bias. It depends on nothing
but the row of A and the column of B, so batches and threads change no bits.
"""

from __future__ import annotations

from typing import Any

from modelc.kernels.jit import inlined, kernel
from modelc.kernels.lanes import load_first, store_first
from modelc.kernels.pointers import f32_ptr, f64_ptr, i64_ptr
from modelc.kernels.simd import fma, load_f32, splat_at, splat_zero, store_f32, tile_f32
from modelc.kernels.split import split

SEGMENT = 512
TILE_ROWS = 8  # 2 panels x 8 rows: 250 GFLOP/s on one core; 12 rows spill, 140
BLOCK_FLOATS = 1 << 17  # of A that stay in the L2 cache while all panels pass over them


def make_tile(n_rows: int, n_panels: int) -> Any:
    """The function of a tile: rows p + u * lda of A times panels at b[q].

    Writes c[o + u * ldc + ...] for rows u < valid and the first `cols` columns; `has_bias`: whether bias[j ...]
    is added; `add`: whether the old value is.
    """
    n_sums = n_rows * n_panels

    @inlined
    def finish(value, c, at, bias, j, has_bias, add, cols):
        if add:
            value = value + load_first(c, at, cols)
        if has_bias:
            value = value + load_first(bias, j, cols)
        return value

    @kernel
    def tile(a, p, lda, k, b, q, c, o, ldc, bias, has_bias, j, valid, cols, add):
        acc = tile_f32(n_sums)
        total = tile_f32(n_sums)
        for i in range(n_sums):
            total[i] = splat_zero()
        panel = k * 16
        last = valid - 1
        for segment in range(0, k, SEGMENT):
            for i in range(n_sums):
                acc[i] = splat_zero()
            for column in range(segment, min(segment + SEGMENT, k)):
                for g in range(n_panels):
                    weights = load_f32(b, q + g * panel + column * 16)
                    for u in range(n_rows):
                        i = g * n_rows + u
                        acc[i] = fma(weights, splat_at(a, p + min(u, last) * lda + column), acc[i])
            for i in range(n_sums):
                total[i] = total[i] + acc[i]
        for g in range(n_panels):
            left = min(cols - 16 * g, 16)
            for u in range(n_rows):
                if u < valid:
                    at = o + u * ldc + 16 * g
                    value = finish(total[g * n_rows + u], c, at, bias, j + 16 * g, has_bias, add, left)
                    if left == 16:
                        store_f32(c, at, value)
                    else:
                        store_first(c, at, value, left)

    return tile


def make_array_gemm() -> Any:
    """Opcode: C = A @ B [+ C] [+ bias] for a batch of matrices.

    I: 2 A, 3 B, 4 C (addresses), 5 m, 6 n, 7 k, 8 lda, 9 ldc (floats), 10 bias (n,) or 0, 11 batch, 12 address of int64
    (batch, 3): float offsets of each A, B, C; 13 1 = add to what C has.
    """
    wide = make_tile(TILE_ROWS, 2)
    narrow = make_tile(TILE_ROWS, 1)
    single = make_tile(1, 4)
    single1 = make_tile(1, 1)

    @kernel
    def rows_by_panels(I, offsets, first_row, stop_row, first, stop):
        a = f32_ptr(I[2])
        b = f32_ptr(I[3])
        c = f32_ptr(I[4])
        bias = f32_ptr(I[10])
        has_bias = I[10] != 0
        add = I[13] != 0
        n, k, lda, ldc = I[6], I[7], I[8], I[9]
        at_a, at_b, at_c = offsets[0], offsets[1], offsets[2]
        block = max(TILE_ROWS, BLOCK_FLOATS // max(k, 1) // TILE_ROWS * TILE_ROWS)
        for start in range(first_row, stop_row, block):
            end = min(start + block, stop_row)
            g = first
            while g < stop:
                q = at_b + g * 16 * k
                j = g * 16
                step = 4 if end - start == 1 and stop - g >= 4 else (2 if stop - g >= 2 else 1)
                if end - start == 1 and step == 2:
                    step = 1
                cols = min(n - j, 16 * step)
                row = start
                while row < end:
                    p = at_a + row * lda
                    o = at_c + row * ldc + j
                    valid = end - row
                    if valid == 1 and step == 4:
                        single(a, p, lda, k, b, q, c, o, ldc, bias, has_bias, j, 1, cols, add)
                    elif valid == 1 and step == 1:
                        single1(a, p, lda, k, b, q, c, o, ldc, bias, has_bias, j, 1, cols, add)
                    elif step == 2:
                        wide(a, p, lda, k, b, q, c, o, ldc, bias, has_bias, j, min(valid, TILE_ROWS), cols, add)
                    else:
                        narrow(a, p, lda, k, b, q, c, o, ldc, bias, has_bias, j, min(valid, TILE_ROWS), cols, add)
                    row += TILE_ROWS
                g += step

    @kernel
    def array_gemm(I, E, tid, nth):
        offsets = i64_ptr(I[12])
        panels = (I[6] + 15) // 16
        m = I[5]
        if I[11] >= nth:  # whole products
            first, stop = split(I[11], tid, nth)
            for i in range(first, stop):
                rows_by_panels(I, i64_ptr(I[12] + 24 * i), 0, m, 0, panels)
            return
        for i in range(I[11]):
            offsets = i64_ptr(I[12] + 24 * i)
            if panels >= 4 * nth or m <= TILE_ROWS:
                first, stop = split((panels + 1) // 2, tid, nth)
                rows_by_panels(I, offsets, 0, m, first * 2, min(stop * 2, panels))
            else:
                first, stop = split((m + TILE_ROWS - 1) // TILE_ROWS, tid, nth)
                rows_by_panels(I, offsets, first * TILE_ROWS, min(stop * TILE_ROWS, m), 0, panels)

    return array_gemm


def make_array_panels() -> Any:
    """Opcode: matrices anywhere in memory into panels.

    I: 2 source, 3 panels (addresses), 4 k, 5 n, 6 floats from one k to the next, 7 floats from one column to the next,
    8 batch, 9 address of int64 (batch, 2): float offsets of each source and its panels.
    """

    @kernel
    def array_panels(I, E, tid, nth):
        x = f32_ptr(I[2])
        y = f32_ptr(I[3])
        k, n, by_k, by_n = I[4], I[5], I[6], I[7]
        panels = (n + 15) // 16
        first, stop = split(I[8] * panels, tid, nth)
        for unit in range(first, stop):
            offsets = i64_ptr(I[9] + 16 * (unit // panels))
            j = unit % panels * 16
            p = offsets[0] + j * by_n
            o = offsets[1] + j * k
            cols = min(n - j, 16)
            if by_n == 1:
                for i in range(k):
                    store_f32(y, o + 16 * i, load_first(x, p + i * by_k, cols))
            else:
                for i in range(k):
                    for lane in range(16):
                        y[o + 16 * i + lane] = x[p + i * by_k + lane * by_n] if lane < cols else 0.0

    return array_panels


def make_array_gemm_f64() -> Any:
    """Opcode: C = A @ B in float64, both contiguous rows; each element one chain over ascending k.

    I: 2 A, 3 B, 4 C (addresses), 5 m, 6 n, 7 k, 8 batch, 9 address of int64 (batch, 3): offsets of each A, B, C.
    """

    @kernel
    def array_gemm_f64(I, E, tid, nth):
        a = f64_ptr(I[2])
        b = f64_ptr(I[3])
        c = f64_ptr(I[4])
        m, n, k = I[5], I[6], I[7]
        first, stop = split(I[8] * m, tid, nth)
        for unit in range(first, stop):
            offsets = i64_ptr(I[9] + 24 * (unit // m))
            row = unit % m
            o = offsets[2] + row * n
            for j in range(n):
                c[o + j] = 0.0
            for i in range(k):
                factor = a[offsets[0] + row * k + i]
                p = offsets[1] + i * n
                for j in range(n):
                    c[o + j] = c[o + j] + factor * b[p + j]

    return array_gemm_f64
