"""Resize and Upsample: each axis on its own, as weighted sums of neighbouring elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from modelc.onnx.call import Call
from modelc.onnx.operator import Table, parametric
from modelc.onnx.operators.shapes import whole_numbers
from modelc.onnx.values import Array

_TRANSFORMS = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
)


def resize(
    call: Call, x: Array, roi: Array | None = None, scales: Array | None = None, sizes: Array | None = None
) -> Array:
    """Other sizes, given as they are or as factors."""
    axes = [call.axis(axis, x.ndim) for axis in call.integers("axes", range(x.ndim))]
    if sizes is not None and sizes.size:
        wanted = whole_numbers(call, sizes, "the sizes")
        factors = [n / max(x.shape[axis], 1) for axis, n in zip(axes, wanted, strict=True)]
        wanted, factors = _kept_aspect(call, x, axes, wanted, factors)
    elif scales is not None and scales.size:
        factors = [float(value) for value in scales.reshape(-1)]
        if len(factors) != len(axes) or not all(0 < factor < 1e9 for factor in factors):
            raise call.fail("the scales do not fit", got=factors, expected=f"{len(axes)} positive numbers")
        wanted = [int(np.floor(x.shape[axis] * factor)) for axis, factor in zip(axes, factors, strict=True)]
    else:
        raise call.fail("neither scales nor sizes")
    shape = list(x.shape)
    for axis, n in zip(axes, wanted, strict=True):
        shape[axis] = n
    call.room(shape, np.float64)
    ends = _ends(call, x, axes, roi)
    return _resized(call, x, [(a, n, f, *ends[a]) for a, n, f in zip(axes, wanted, factors, strict=True)])


def _kept_aspect(
    call: Call, x: Array, axes: list[int], wanted: list[int], factors: list[float]
) -> tuple[list[int], list[float]]:
    policy = call.choice("keep_aspect_ratio_policy", "stretch", ("stretch", "not_larger", "not_smaller"))
    if policy == "stretch":
        return wanted, factors
    factor = min(factors) if policy == "not_larger" else max(factors)
    sizes = [int(np.floor(x.shape[axis] * factor + 0.5)) for axis in axes]
    return sizes, [factor] * len(axes)


def _ends(call: Call, x: Array, axes: list[int], roi: Array | None) -> dict[int, tuple[float, float]]:
    """Start and end of the region of interest for each axis, in shares of the size."""
    if roi is None or not roi.size:
        return dict.fromkeys(axes, (0.0, 1.0))
    numbers = [float(value) for value in roi.reshape(-1)]
    if len(numbers) != 2 * len(axes):
        raise call.fail("the region does not fit", got=len(numbers), expected=2 * len(axes))
    return {axis: (numbers[i], numbers[len(axes) + i]) for i, axis in enumerate(axes)}


def _resized(call: Call, x: Array, axes: list[tuple[int, int, float, float, float]]) -> Array:
    mode = call.choice("mode", "nearest", ("nearest", "linear", "cubic"))
    transform = call.choice("coordinate_transformation_mode", "half_pixel", _TRANSFORMS)
    extrapolated = call.attribute("extrapolation_value", float, 0.0)
    y = x if mode == "nearest" else x.astype(np.float64)
    for axis, n_out, factor, start, end in axes:
        n = x.shape[axis]
        if n_out == n and factor == 1.0 and transform != "tf_crop_and_resize":
            continue
        places = _places(transform, n, n_out, factor, start, end)
        if mode == "nearest":
            y = np.take(y, _nearest(call, places, n), axis)
        else:
            index, weights = _neighbours(call, mode, places, n, factor)
            y = _weighted(y, axis, index, weights)
        if transform == "tf_crop_and_resize":
            outside = (places < 0) | (places > n - 1)
            shape = [-1 if d == axis else 1 for d in range(x.ndim)]
            y = np.where(outside.reshape(shape), y.dtype.type(extrapolated), y)
    return _in_type(y, x.dtype)


def _in_type(y: Array, dtype: np.dtype[Any]) -> Array:
    if dtype.kind in "iu" and y.dtype != dtype:
        limits = np.iinfo(dtype)
        return np.clip(np.rint(y), limits.min, limits.max).astype(dtype)
    return y.astype(dtype)


def _places(transform: str, n: int, n_out: int, factor: float, start: float, end: float) -> Array:
    """Where each output element lies in the input, in elements."""
    i = np.arange(n_out, dtype=np.float64)
    length = factor * n
    if transform == "align_corners":
        return i * 0.0 if length == 1 else i * (n - 1) / (length - 1)
    if transform == "asymmetric":
        return i / factor
    if transform == "tf_crop_and_resize":
        if n_out > 1:
            return start * (n - 1) + i * (end - start) * (n - 1) / (n_out - 1)
        return np.full(n_out, 0.5 * (start + end) * (n - 1))
    if transform == "pytorch_half_pixel" and n_out == 1:
        return np.full(n_out, -0.5)
    places = (i + 0.5) / factor - 0.5
    if transform == "half_pixel_symmetric":
        places += n / 2 * (1 - n_out / length)
    return places


def _nearest(call: Call, places: Array, n: int) -> Array:
    modes: dict[str, Callable[[Array], Any]] = {
        "round_prefer_floor": lambda p: np.ceil(p - 0.5),
        "round_prefer_ceil": lambda p: np.floor(p + 0.5),
        "floor": np.floor,
        "ceil": np.ceil,
    }
    mode = call.choice("nearest_mode", "round_prefer_floor", tuple(modes))
    return np.clip(modes[mode](places), 0, n - 1).astype(np.int64)


def _neighbours(call: Call, mode: str, places: Array, n: int, factor: float) -> tuple[Array, Array]:
    """For each output the elements it is made of and their weights, (outputs, count) each."""
    reach = 1 if mode == "linear" else 2
    stretch = min(factor, 1.0) if call.attribute("antialias", int, 0) else 1.0
    count = int(np.ceil(reach / stretch))
    index = np.floor(places).astype(np.int64)[:, None] + np.arange(1 - count, count + 1)
    distance = np.abs(index - places[:, None]) * stretch
    if mode == "linear":
        weights = np.maximum(1.0 - distance, 0.0)
    else:
        weights = cubic(distance, call.attribute("cubic_coeff_a", float, -0.75))
    if call.attribute("exclude_outside", int, 0):
        weights = np.where((index >= 0) & (index < n), weights, 0.0)
    weights = weights / weights.sum(axis=1, keepdims=True)
    return np.clip(index, 0, n - 1), weights


def cubic(t: Array, a: float = -0.75) -> Array:
    """The cubic convolution kernel at distances t. Source: R. Keys, 1981."""
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0.0))


def _weighted(x: Array, axis: int, index: Array, weights: Array) -> Array:
    """Sums over neighbours in ascending order."""
    shape = [-1 if d == axis else 1 for d in range(x.ndim)]
    y = np.zeros((), np.float64)
    for i in range(index.shape[1]):
        y = y + np.take(x, index[:, i], axis) * weights[:, i].reshape(shape)
    return y


def resize_by_scales(call: Call, x: Array, scales: Array) -> Array:
    """Version 10: factors alone, places without half pixels, the element below."""
    return _upsampled(call, x, [float(value) for value in scales.reshape(-1)])


def upsample_by_attributes(call: Call, x: Array) -> Array:
    """Version 7: factors in an attribute."""
    return _upsampled(call, x, [float(value) for value in call.attribute("scales", list)])


def _upsampled(call: Call, x: Array, factors: list[float]) -> Array:
    mode = call.choice("mode", "nearest", ("nearest", "linear", "bilinear"))
    if len(factors) != x.ndim or not all(0 < factor < 1e9 for factor in factors):
        raise call.fail("the scales do not fit", got=factors, expected=f"{x.ndim} positive numbers")
    shape = [int(np.floor(n * factor)) for n, factor in zip(x.shape, factors, strict=True)]
    call.room(shape, np.float64)
    y = x if mode == "nearest" else x.astype(np.float64)
    for axis, (n, n_out, factor) in enumerate(zip(x.shape, shape, factors, strict=True)):
        if n == n_out:
            continue
        places = np.arange(n_out) / factor
        if mode == "nearest":
            y = np.take(y, np.clip(np.floor(places), 0, n - 1).astype(np.int64), axis)
        else:
            y = _weighted(y, axis, *_neighbours(call, "linear", places, n, factor))
    return _in_type(y, x.dtype)


RESIZING: Table = {
    "Resize": {10: parametric(resize_by_scales), 11: parametric(resize)},
    "Upsample": {7: upsample_by_attributes, 9: parametric(resize_by_scales)},
}
