"""Functions of the elements of float32 arrays: of one array, and of two that are broadcast against each other."""

from __future__ import annotations

from typing import Any

from modelc.kernels.array_places import CHUNK, DIMS, count_rows, row_places
from modelc.kernels.jit import inlined, kernel
from modelc.kernels.lanes import load_first, store_first
from modelc.kernels.pointers import f32_of_bits, f32_ptr, i64_ptr
from modelc.kernels.simd import load_f32, splat_at, splat_f32, store_f32
from modelc.kernels.special_functions import PLAIN, WITH_PARAMETERS
from modelc.kernels.split import split


def make_array_map(name: str) -> Any:
    """Opcode: y = f(x) element by element. I: 2 x, 3 y (addresses), 4 elements, 5 and 6 parameters (float32 bits)."""
    plain = name in PLAIN
    function = PLAIN[name] if plain else WITH_PARAMETERS[name]

    @inlined
    def apply(value, a, b):
        return function(value) if plain else function(value, splat_f32(a), splat_f32(b))

    @kernel
    def array_map(I, E, tid, nth):
        x = f32_ptr(I[2])
        y = f32_ptr(I[3])
        a, b = f32_of_bits(I[5]), f32_of_bits(I[6])
        first, stop = split((I[4] + 15) // 16, tid, nth)
        for i in range(first * 16, min(stop * 16, I[4] // 16 * 16), 16):
            store_f32(y, i, apply(load_f32(x, i), a, b))
        left = I[4] % 16
        if left and stop * 16 > I[4] and first < stop:
            i = I[4] - left
            store_first(y, i, apply(load_first(x, i, left), a, b), left)

    return array_map


@inlined
def _add(x, y):
    return x + y


@inlined
def _sub(x, y):
    return x - y


@inlined
def _mul(x, y):
    return x * y


@inlined
def _div(x, y):
    return x / y


PAIRS = {"add": _add, "sub": _sub, "mul": _mul, "div": _div}


def make_array_pair(name: str) -> Any:
    """Opcode: y = f(a, b) with broadcasting; y is contiguous.

    I: 2 a, 3 b, 4 y (addresses), 5 address of int64 (3, 6): sizes, outermost first, and the float strides of a and b;
    the last stride is 0 or 1.
    """
    function = PAIRS[name]

    @inlined
    def operand(pointer, at, step, left):
        if step == 0:
            return splat_at(pointer, at)
        return load_f32(pointer, at) if left >= 16 else load_first(pointer, at, left)

    @inlined
    def run(a, b, y, at_a, at_b, o, count, step_a, step_b):
        for i in range(0, count, 16):
            left = count - i
            value = function(operand(a, at_a + i * step_a, step_a, left), operand(b, at_b + i * step_b, step_b, left))
            if left >= 16:
                store_f32(y, o + i, value)
            else:
                store_first(y, o + i, value, left)

    @kernel
    def array_pair(I, E, tid, nth):
        a = f32_ptr(I[2])
        b = f32_ptr(I[3])
        y = f32_ptr(I[4])
        sizes = i64_ptr(I[5])
        inner = sizes[DIMS - 1]
        step_a, step_b = sizes[2 * DIMS - 1], sizes[3 * DIMS - 1]
        chunks = (inner + CHUNK - 1) // CHUNK
        first, stop = split(count_rows(sizes) * chunks, tid, nth)
        for unit in range(first, stop):
            row, start = unit // chunks, unit % chunks * CHUNK
            at_a, at_b = row_places(sizes, row)
            at_a += start * step_a
            at_b += start * step_b
            count = min(CHUNK, inner - start)
            o = row * inner + start
            if step_a == 1 and step_b == 1:
                run(a, b, y, at_a, at_b, o, count, 1, 1)
            elif step_a == 1:
                run(a, b, y, at_a, at_b, o, count, 1, 0)
            elif step_b == 1:
                run(a, b, y, at_a, at_b, o, count, 0, 1)
            else:
                run(a, b, y, at_a, at_b, o, count, 0, 0)

    return array_pair
