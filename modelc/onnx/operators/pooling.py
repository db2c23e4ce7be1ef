"""Pooling: one number for each window of the input, element by element of the window."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from modelc.onnx import functions
from modelc.onnx.call import Call
from modelc.onnx.lowering import is_f32, reduce_f32
from modelc.onnx.operator import Lowered, Table
from modelc.onnx.operators.reductions import total
from modelc.onnx.operators.windows import Windows, spatial, windows
from modelc.onnx.values import Array, is_small_float


def _windows(call: Call, x: Array) -> Windows:
    sizes = spatial(call, x)
    kernel = call.integers("kernel_shape", None, len(sizes))
    return windows(call, sizes, kernel, ceil=bool(call.attribute("ceil_mode", int, 0)))


def _padded(call: Call, x: Array, where: Windows, value: Any) -> Array:
    """The input with padding, and as much behind as the last windows need."""
    widths = [(0, 0), (0, 0)]
    for i, n in enumerate(where.sizes):
        reach = (where.kernel[i] - 1) * where.dilations[i] + 1
        end = max((where.out[i] - 1) * where.strides[i] + reach - where.before[i], n)
        widths.append((where.before[i], end - n))
    call.room([n + a + b for n, (a, b) in zip(x.shape, widths, strict=True)], x.dtype)
    return np.pad(x, widths, constant_values=value)


def _lowest(dtype: np.dtype[Any]) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def max_pool(call: Call, x: Array) -> Any:
    """The largest element of each window, and where it is in the input."""
    where = _windows(call, x)
    padded = _padded(call, x, where, _lowest(x.dtype))
    y = None
    if not call.wants(1):
        for place in where.places():
            part = padded[where.part(place)]
            y = np.array(part) if y is None else np.maximum(y, part)
        return y
    column_major = bool(call.attribute("storage_order", int, 0))
    steps = [1]
    for n in where.sizes[:0:-1] if not column_major else where.sizes[:-1]:
        steps.append(steps[-1] * n)
    steps = steps if column_major else steps[::-1]
    grid = np.indices(where.out)
    index = np.zeros((), np.int64)
    for place in where.places():
        part = padded[where.part(place)]
        flat = np.zeros(where.out, np.int64)
        for d, step in enumerate(steps):
            flat += (grid[d] * where.strides[d] + place[d] * where.dilations[d] - where.before[d]) * step
        if y is None:
            y, index = np.array(part), np.broadcast_to(flat, part.shape).copy()
        else:
            better = part > y
            y, index = np.where(better, part, y), np.where(better, flat, index)
    images = np.arange(math.prod(x.shape[:2])).reshape(*x.shape[:2], *[1] * len(where.out))
    return y, index + images * math.prod(where.sizes)


def average_pool(call: Call, x: Array) -> Array:
    """The mean of each window, padding counted or not."""
    where = _windows(call, x)
    wide = x.astype(np.float32) if is_small_float(x.dtype) else x
    padded = _padded(call, wide, where, 0)
    if call.attribute("count_include_pad", int, 0):
        sizes = [n + a + b for n, a, b in zip(where.sizes, where.before, where.after, strict=True)]
        one = np.ones(sizes, np.int64)
        behind = [(0, have - n) for have, n in zip(padded.shape[2:], sizes, strict=True)]
        counted = np.pad(one, [(0, max(b, 0)) for _, b in behind])
    else:
        counted = _padded(call, np.ones((1, 1, *where.sizes), np.int64), where, 0)[0, 0]
    y, counts = np.zeros((*x.shape[:2], *where.out), wide.dtype), np.zeros(where.out, np.int64)
    for place in where.places():
        y = y + padded[where.part(place)]
        counts = counts + counted[where.part(place)]
    return (y / np.maximum(counts, 1).astype(wide.dtype)).astype(x.dtype)


def lp_pool(call: Call, x: Array) -> Array:
    """The p-norm of each window."""
    where = _windows(call, x)
    p = call.attribute("p", int, 2)
    terms = functions.power(np.abs(_padded(call, x.astype(np.float64), where, 0)), np.array(float(p)))
    y = np.zeros((*x.shape[:2], *where.out))
    for place in where.places():
        y = y + terms[where.part(place)]
    return functions.power(y, np.array(1.0 / p)).astype(x.dtype)


def global_average_pool(call: Call, x: Array) -> Any:
    """The mean of each channel."""
    n = math.prod(spatial(call, x))
    shape = (*x.shape[:2], *[1] * (x.ndim - 2))
    if is_f32(x) and n:
        return Lowered(reduce_f32(call, "sum", x, list(range(2, x.ndim)), 1.0 / n).reshape(shape))
    return (total(x.reshape(*x.shape[:2], -1)) / n).astype(x.dtype).reshape(shape)


def global_max_pool(call: Call, x: Array) -> Array:
    """The largest element of each channel."""
    spatial(call, x)
    return np.max(x, axis=tuple(range(2, x.ndim)), keepdims=True)


def global_lp_pool(call: Call, x: Array) -> Array:
    """The p-norm of each channel."""
    spatial(call, x)
    p = call.attribute("p", int, 2)
    terms = functions.power(np.abs(x.astype(np.float64)).reshape(*x.shape[:2], -1), np.array(float(p)))
    y = functions.power(total(terms), np.array(1.0 / p))
    return y.astype(x.dtype).reshape(*x.shape[:2], *[1] * (x.ndim - 2))


def max_unpool(call: Call, x: Array, indices: Array, target: Array | None = None) -> Array:
    """Puts elements back to where a max pool took them from; 0 elsewhere."""
    sizes = spatial(call, x)
    n = len(sizes)
    kernel = call.integers("kernel_shape", None, n)
    strides, pads = call.integers("strides", [1] * n, n), call.integers("pads", [0] * (2 * n), 2 * n)
    natural = [
        (size - 1) * s + k - pads[i] - pads[n + i]
        for i, (size, s, k) in enumerate(zip(sizes, strides, kernel, strict=True))
    ]
    shape = [*x.shape[:2], *natural] if target is None else [int(v) for v in target]
    call.room(shape, x.dtype)
    plane = math.prod(natural)
    flat = indices.reshape(-1)
    if flat.size and (flat.min() < 0 or flat.max() >= math.prod(x.shape[:2]) * plane):
        raise call.fail("an index is out of range", got=int(flat.max()))
    y = np.zeros(shape, x.dtype)
    image, place = flat // plane, flat % plane
    where = np.unravel_index(place, natural)
    y[(image // x.shape[1], image % x.shape[1], *where)] = x.reshape(-1)
    return y


def max_roi_pool(call: Call, x: Array, regions: Array) -> Array:
    """The largest elements of a grid of bins in each region."""
    rows, columns = call.integers("pooled_shape", None, 2)
    scale = call.attribute("spatial_scale", float, 1.0)
    call.room((len(regions), x.shape[1], rows, columns), x.dtype)
    y = np.zeros((len(regions), x.shape[1], rows, columns), x.dtype)
    for r, region in enumerate(regions.astype(np.float64)):
        image = x[int(region[0])]
        left, top, right, bottom = (int(np.floor(v * scale + 0.5)) for v in region[1:])
        height, width = max(bottom - top + 1, 1) / rows, max(right - left + 1, 1) / columns
        for i in range(rows):
            for j in range(columns):
                part = image[
                    :,
                    max(top + math.floor(i * height), 0) : max(top + math.ceil((i + 1) * height), 0),
                    max(left + math.floor(j * width), 0) : max(left + math.ceil((j + 1) * width), 0),
                ]
                if part.size:
                    y[r, :, i, j] = part.max(axis=(1, 2))
    return y


POOLING: Table = {
    "AveragePool": average_pool,
    "GlobalAveragePool": global_average_pool,
    "GlobalLpPool": global_lp_pool,
    "GlobalMaxPool": global_max_pool,
    "LpPool": lp_pool,
    "MaxPool": max_pool,
    "MaxRoiPool": max_roi_pool,
    "MaxUnpool": max_unpool,
}
