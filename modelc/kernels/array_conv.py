"""Convolutions as products whose right side is read from the image itself.

The image is laid out such that the elements under one element of the kernel, for neighbouring output positions, are
neighbours: padded, and for strides split into one plane for each remainder of the coordinates. Then row k of the right
side is the image from offset k on, and no patches are copied. Positions count along the rows of that layout; those
behind the end of an output row are computed for nothing and left out later.
"""

from __future__ import annotations

from typing import Any

from modelc.kernels.array_gemm import BLOCK_FLOATS, SEGMENT, TILE_ROWS
from modelc.kernels.jit import inlined, kernel
from modelc.kernels.lanes import load_first, store_first
from modelc.kernels.pointers import f32_ptr, i64_ptr, offset
from modelc.kernels.simd import fma, load_f32, splat_at, splat_f32, splat_zero, store_f32, tile_f32
from modelc.kernels.split import split


def _make_tile(n_rows: int, n_panels: int, partial: bool) -> Any:
    """The function of a tile: `n_rows` rows of weights times 16 `n_panels` positions, `partial`: fewer than 16.

    **Order** as in `array_gemm`: segments of 512 k, one chain of FMAs inside; the sums added in ascending order, then
    the bias.
    """
    n_sums = n_rows * n_panels

    @inlined
    def positions(x, at, cols):
        return load_first(x, at, cols) if partial else load_f32(x, at)

    @kernel
    def tile(w, p, k, x, q, offsets, bias, has_bias, y, o, ldy, valid, cols):
        acc = tile_f32(n_sums)
        total = tile_f32(n_sums)
        for i in range(n_sums):
            total[i] = splat_zero()
        last = valid - 1
        for segment in range(0, k, SEGMENT):
            for i in range(n_sums):
                acc[i] = splat_zero()
            for column in range(segment, min(segment + SEGMENT, k)):
                at = q + offsets[column]
                for g in range(n_panels):
                    values = positions(x, at + 16 * g, cols)
                    for u in range(n_rows):
                        i = g * n_rows + u
                        acc[i] = fma(values, splat_at(w, p + min(u, last) * k + column), acc[i])
            for i in range(n_sums):
                total[i] = total[i] + acc[i]
        for u in range(n_rows):
            if u < valid:
                for g in range(n_panels):
                    value = total[g * n_rows + u]
                    if has_bias:
                        value = value + splat_f32(bias[u])
                    if partial:
                        store_first(y, o + u * ldy, value, cols)
                    else:
                        store_f32(y, o + u * ldy + 16 * g, value)

    return tile


def make_array_conv() -> Any:
    """Opcode: y = w * x + bias for all groups of all images.

    I: 2 w (groups, m, k), 3 x, 4 y (images, groups, m, n) (addresses), 5 m, 6 n positions, 7 k, 8 images, 9 groups,
    10 floats of x for a group, 11 address of int64 (k,): float offsets in it, 12 bias (groups, m) or 0.
    """
    wide = _make_tile(TILE_ROWS, 2, False)
    narrow = _make_tile(TILE_ROWS, 1, False)
    edge = _make_tile(TILE_ROWS, 1, True)
    single = _make_tile(1, 4, False)
    single1 = _make_tile(1, 1, False)
    single_edge = _make_tile(1, 1, True)

    @kernel
    def one_group(I, unit, first_row, stop_row, first, stop):
        """Rows and panels of group `unit` of all images."""
        m, n, k = I[5], I[6], I[7]
        group = unit % I[9]
        w = f32_ptr(I[2])
        x = f32_ptr(I[3])
        y = f32_ptr(I[4])
        offsets = i64_ptr(I[11])
        bias = f32_ptr(I[12])
        has_bias = I[12] != 0
        at_w, at_x, at_y = group * m * k, unit * I[10], unit * m * n
        block = max(TILE_ROWS, BLOCK_FLOATS // k // TILE_ROWS * TILE_ROWS)
        for start in range(first_row, stop_row, block):
            end = min(start + block, stop_row)
            g = first
            while g < stop:
                left = n - g * 16
                step = 1
                if left >= 64 and stop - g >= 4 and end - start == 1:
                    step = 4
                elif left >= 32 and stop - g >= 2 and end - start > 1:
                    step = 2
                q = at_x + g * 16
                for row in range(start, end, TILE_ROWS):
                    p, o = at_w + row * k, at_y + row * n + g * 16
                    b = offset(bias, group * m + row)
                    valid = min(end - row, TILE_ROWS)
                    if valid == 1:
                        if step == 4:
                            single(w, p, k, x, q, offsets, b, has_bias, y, o, n, 1, 64)
                        elif left < 16:
                            single_edge(w, p, k, x, q, offsets, b, has_bias, y, o, n, 1, left)
                        else:
                            for part in range(step):
                                single1(w, p, k, x, q + 16 * part, offsets, b, has_bias, y, o + 16 * part, n, 1, 16)
                    elif step == 2:
                        wide(w, p, k, x, q, offsets, b, has_bias, y, o, n, valid, 32)
                    elif left < 16:
                        edge(w, p, k, x, q, offsets, b, has_bias, y, o, n, valid, left)
                    else:
                        narrow(w, p, k, x, q, offsets, b, has_bias, y, o, n, valid, 16)
                g += step

    @kernel
    def array_conv(I, E, tid, nth):
        m = I[5]
        units = I[8] * I[9]
        panels = (I[6] + 15) // 16
        if units >= 2 * nth:
            first, stop = split(units, tid, nth)
            for unit in range(first, stop):
                one_group(I, unit, 0, m, 0, panels)
            return
        for unit in range(units):
            if panels >= 8 * nth:
                first, stop = split((panels + 1) // 2, tid, nth)
                one_group(I, unit, 0, m, first * 2, min(stop * 2, panels))
            else:
                first, stop = split((m + TILE_ROWS - 1) // TILE_ROWS, tid, nth)
                one_group(I, unit, first * TILE_ROWS, min(stop * TILE_ROWS, m), 0, panels)

    return array_conv
