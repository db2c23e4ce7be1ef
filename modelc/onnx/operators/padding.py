"""Padding: more elements at the ends of dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from modelc.onnx.call import Call
from modelc.onnx.lowering import contiguous, copy
from modelc.onnx.operator import Lowered, Table, parametric
from modelc.onnx.operators.shapes import whole_numbers
from modelc.onnx.values import Array


def pad(call: Call, x: Array, pads: Array, value: Array | None = None, axes: Array | None = None) -> Any:
    """More elements at the ends of dimensions, fewer where a number is negative."""
    numbers = whole_numbers(call, pads, "pads")
    along = list(range(x.ndim)) if axes is None else whole_numbers(call, axes, "axes")
    return _padded(call, x, numbers, value, [call.axis(axis, x.ndim) for axis in along])


def pad_by_attributes(call: Call, x: Array) -> Any:
    """As above, with everything in attributes."""
    value = np.array(call.attribute("value", float, 0.0), x.dtype)
    return _padded(call, x, call.integers("pads"), value, list(range(x.ndim)))


def _padded(call: Call, x: Array, pads: list[int], value: Array | None, axes: list[int]) -> Any:
    mode = call.choice("mode", "constant", ("constant", "reflect", "edge", "wrap"))
    if len(pads) != 2 * len(axes) or len(set(axes)) != len(axes):
        raise call.fail("the pads do not fit", got=pads, expected=f"two for each of {len(axes)} axes")
    for axis, before, after in zip(axes, pads, pads[len(axes) :], strict=False):
        n = x.shape[axis]
        if n + before + after < 0:
            raise call.fail("the pads take away more than there is", got=pads)
        cut = slice(max(-before, 0), n - max(-after, 0))
        x = x[(slice(None),) * axis + (cut,)]
        if max(before, 0) + max(after, 0):
            x = _padded_axis(call, x, axis, max(before, 0), max(after, 0), mode, value)
    return x if x.dtype.hasobject else Lowered(contiguous(call, x))


def _padded_axis(call: Call, x: Array, axis: int, before: int, after: int, mode: str, value: Array | None) -> Array:
    n = x.shape[axis]
    sizes = list(x.shape)
    sizes[axis] = n + before + after
    y = call.empty(sizes, x.dtype)

    def part(array: Array, start: int, stop: int) -> Array:
        result: Array = array[(slice(None),) * axis + (slice(start, stop),)]
        return result

    copy(call, x, part(y, before, before + n))
    if mode == "constant":
        filler = np.zeros((), x.dtype) if value is None else value.reshape(()).astype(x.dtype)
        call.lasting(filler)
        for start, stop in ((0, before), (before + n, before + n + after)):
            copy(call, filler, part(y, start, stop))
        return y
    if n == 0 or (mode == "reflect" and n == 1):
        raise call.fail(f"nothing to {mode}", got=list(x.shape))
    for i, place in [(i, i - before) for i in range(before)] + [(before + n + i, n + i) for i in range(after)]:
        source = _mirrored(place, n, mode)
        copy(call, part(x, source, source + 1), part(y, i, i + 1))
    return y


def _mirrored(place: int, n: int, mode: str) -> int:
    if mode == "edge":
        return min(max(place, 0), n - 1)
    if mode == "wrap":
        return place % n
    place %= 2 * (n - 1)
    return min(place, 2 * (n - 1) - place)


PADDING: Table = {"Pad": {2: pad_by_attributes, 11: parametric(pad)}}
