"""Instructions for arrays of any shape and strides: copies, maps, pairs, sums, rows, products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from modelc.onnx.call import Call
from modelc.onnx.machine import address, float_bits
from modelc.onnx.values import F32, Array

DIMS = 6  # of the loops in kernels


def is_f32(*arrays: Array | None) -> bool:
    """Whether all that are given are float32."""
    return all(array is None or array.dtype == F32 for array in arrays)


def contiguous(call: Call, x: Array) -> Array:
    """`x`, or a copy of it in C order."""
    if x.flags.c_contiguous and x.flags.aligned:
        return x
    y = call.empty(x.shape, x.dtype)
    copy(call, x, y)
    return y


def copy(call: Call, x: Array, y: Array) -> None:
    """Instructions that write `x`, broadcast, to `y` (any strides). Elements have 1, 2, 4 or 8 bytes."""
    x = np.broadcast_to(x, y.shape)
    if not y.size:
        return
    if y.itemsize == 16:
        _copy(call, _halves(x), _halves(y))
    else:
        _copy(call, x, y)


def _halves(array: Array) -> Array:
    """Elements of 16 bytes as two of 8 in a new last dimension."""
    strides = (*array.strides, 8)
    return np.lib.stride_tricks.as_strided(array.view(np.float64), (*array.shape, 2), strides)


def _copy(call: Call, x: Array, y: Array) -> None:
    sizes, (by_x, by_y) = merged(y.shape, (x.strides, y.strides))
    size = y.itemsize
    outer = len(sizes) - DIMS
    if outer > 0:  # more dimensions than the kernel has loops
        for index in np.ndindex(*sizes[:outer]):
            place_x = address(x) + sum(i * by for i, by in zip(index, by_x[:outer], strict=True))
            place_y = address(y) + sum(i * by for i, by in zip(index, by_y[:outer], strict=True))
            _emit_copy(call, size, place_x, place_y, sizes[outer:], by_x[outer:], by_y[outer:])
        return
    _emit_copy(call, size, address(x), address(y), sizes, by_x, by_y)


def _emit_copy(
    call: Call, size: int, x: int, y: int, sizes: Sequence[int], by_x: Sequence[int], by_y: Sequence[int]
) -> None:
    table = [_padded(sizes, 1), _padded([by // size for by in by_x], 0), _padded([by // size for by in by_y], 0)]
    call.emit(f"array_copy.{size}", x, y, call.numbers(table), work=math.prod(sizes))


def merged(shape: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[list[int], tuple[list[int], ...]]:
    """The same elements in as few dimensions as possible: sizes, and the strides of each array."""
    sizes: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for d, size in enumerate(shape):
        if size == 1:
            continue
        if sizes and all(kept[-1] == by[d] * size for kept, by in zip(steps, strides, strict=True)):
            sizes[-1] *= size
            for kept, by in zip(steps, strides, strict=True):
                kept[-1] = by[d]
        else:
            sizes.append(size)
            for kept, by in zip(steps, strides, strict=True):
                kept.append(by[d])
    return sizes, tuple(steps)


def _padded(values: Sequence[int], filler: int) -> list[int]:
    return [filler] * (DIMS - len(values)) + list(values)


def map_f32(call: Call, name: str, x: Array, a: float = 0.0, b: float = 0.0) -> Array:
    """y = f(x), float32."""
    x = contiguous(call, x)
    y = call.empty(x.shape)
    if x.size:
        call.emit(f"array_map.{name}", address(x), address(y), x.size, float_bits(a), float_bits(b), work=8 * x.size)
    return y


def pair_f32(call: Call, name: str, a: Array, b: Array) -> Array:
    """y = f(a, b) with broadcasting, float32; `add`, `sub`, `mul` or `div`."""
    shape = np.broadcast_shapes(a.shape, b.shape)
    y = call.empty(shape)
    if not y.size:
        return y
    a, b = np.broadcast_to(a, shape), np.broadcast_to(b, shape)
    sizes, (by_a, by_b) = merged(shape, (a.strides, b.strides))
    if len(sizes) > DIMS or (sizes and by_a[-1] not in (0, 4)):
        a = contiguous(call, a)
    if len(sizes) > DIMS or (sizes and by_b[-1] not in (0, 4)):
        b = contiguous(call, b)
    sizes, (by_a, by_b) = merged(shape, (a.strides, b.strides))
    table = [_padded(sizes, 1), _padded([by // 4 for by in by_a], 0), _padded([by // 4 for by in by_b], 0)]
    call.emit(f"array_pair.{name}", address(a), address(b), address(y), call.numbers(table), work=y.size)
    return y


def reduce_f32(call: Call, kind: str, x: Array, axes: Sequence[int], factor: float = 1.0) -> Array:
    """factor * sum over `axes` (ascending, not negative) of x, x^2 (`squares`) or |x| (`abs`): a flat float32 array."""
    n = math.prod(x.shape[d] for d in axes)
    first, last = axes[0], axes[-1]
    if last - first == len(axes) - 1:
        inner = math.prod(x.shape[last + 1 :])
    else:  # not neighbours: brought together at the end
        x = np.transpose(x, [*(d for d in range(x.ndim) if d not in axes), *axes])
        inner = 1
    x = contiguous(call, x)
    outer = x.size // max(n * inner, 1) if n else math.prod(x.shape[:first])
    y = call.empty((outer * inner,))
    if y.size:
        fields = (address(x), address(y), outer, n, inner, float_bits(factor))
        call.emit(f"array_reduce.{kind}", *fields, work=x.size)
    return y


def rows_of(call: Call, x: Array, axis: int) -> tuple[Array, Array]:
    """`x` with `axis` last, contiguous; and an output like it."""
    moved = contiguous(call, np.moveaxis(x, axis, -1))
    return moved, call.empty(moved.shape)


def softmax_f32(call: Call, kind: str, x: Array, axis: int) -> Array:
    """Softmax along `axis`; `soft`, `log`, or `masked` (0 for NaN)."""
    moved, y = rows_of(call, x, axis)
    if y.size:
        n = moved.shape[-1]
        call.emit(f"array_softmax.{kind}", address(moved), address(y), moved.size // n, n, work=16 * moved.size)
    return np.moveaxis(y, -1, axis)


def norm_f32(
    call: Call,
    kind: str,
    x: Array,
    n_rows: int,
    eps: float,
    weight: Array | None = None,
    bias: Array | None = None,
    statistics: tuple[Array, Array] | None = None,
    residual: tuple[Array, Array] | None = None,
) -> Array:
    """`layer` or `rms` norm of `n_rows` rows; `weight` and `bias` have a row's size.

    Args:
        call: the node.
        kind: `layer` or `rms`.
        x: values; each row is contiguous in it.
        n_rows: rows.
        eps: added to the variance.
        weight: factors.
        bias: addends.
        statistics: (n_rows,) each, written: means, inverse deviations.
        residual: like x: a second addend of x, and where the sum is written.
    """
    x = contiguous(call, x)
    y = call.empty(x.shape)
    if not x.size:
        return y
    n = x.size // n_rows
    if any(each is not None and each.size != n for each in (weight, bias)):
        raise call.fail("the vectors do not fit", expected=f"{n} elements")
    places = [0 if each is None else address(contiguous(call, each)) for each in (weight, bias)]
    means, deviations = (0, 0) if statistics is None else map(address, statistics)
    other, summed = (0, 0) if residual is None else (address(contiguous(call, residual[0])), address(residual[1]))
    fields = (address(x), address(y), n_rows, n, *places, float_bits(eps), means, deviations)
    call.emit(f"array_norm.{kind}", *fields, other, summed, work=6 * x.size)
    return y


def offsets(shape: Sequence[int], *strides: Sequence[int]) -> Any:
    """int64 (prod(shape), len(strides)): the offset of each index for each set of strides."""
    columns = []
    for by in strides:
        places = np.zeros((), np.int64)
        for size, step in zip(shape, by, strict=True):
            places = places[..., None] + np.arange(size, dtype=np.int64) * step
        columns.append(places.reshape(-1))
    return np.stack(columns, axis=-1)
