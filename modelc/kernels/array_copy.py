"""Copies between arrays of any strides: transposed, sliced, repeated, spaced."""

from __future__ import annotations

from typing import Any

from modelc.kernels.array_places import CHUNK, DIMS, count_rows, row_places
from modelc.kernels.jit import kernel
from modelc.kernels.pointers import i16_ptr, i32_ptr, i64_ptr, u8_ptr
from modelc.kernels.split import split

POINTERS = {1: u8_ptr, 2: i16_ptr, 4: i32_ptr, 8: i64_ptr}  # by the bytes of an element; copies never look at values


def make_array_copy(element_bytes: int) -> Any:
    """Opcode: y = x element by element.

    I: 2 x, 3 y (addresses), 4 address of int64 (3, 6): sizes, outermost first, and the strides of x and y in elements.
    """
    pointer = POINTERS[element_bytes]

    @kernel
    def array_copy(I, E, tid, nth):
        x = pointer(I[2])
        y = pointer(I[3])
        sizes = i64_ptr(I[4])
        inner = sizes[DIMS - 1]
        by_x, by_y = sizes[2 * DIMS - 1], sizes[3 * DIMS - 1]
        chunks = (inner + CHUNK - 1) // CHUNK
        first, stop = split(count_rows(sizes) * chunks, tid, nth)
        for unit in range(first, stop):
            start = unit % chunks * CHUNK
            p, o = row_places(sizes, unit // chunks)
            p += start * by_x
            o += start * by_y
            count = min(CHUNK, inner - start)
            if by_x == 1 and by_y == 1:
                for i in range(count):
                    y[o + i] = x[p + i]
            else:
                for i in range(count):
                    y[o + i * by_y] = x[p + i * by_x]

    return array_copy
