"""Sums, means, extremes and products over dimensions, and running ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from modelc.onnx import functions
from modelc.onnx.call import Call
from modelc.onnx.lowering import is_f32, map_f32, reduce_f32
from modelc.onnx.operator import Lowered, Table, parametric
from modelc.onnx.operators.shapes import whole_numbers
from modelc.onnx.values import Array
from modelc.runtime.ops import sum_in_pairs


def _axes(call: Call, x: Array, axes: Array | None) -> list[int]:
    """The dimensions to reduce, ascending; none for an operation that changes nothing."""
    chosen = call.integers("axes", []) if axes is None else whole_numbers(call, axes, "axes")
    if not chosen:
        return [] if call.attribute("noop_with_empty_axes", int, 0) else list(range(x.ndim))
    return sorted({call.axis(axis, x.ndim) for axis in chosen})


def _result_shape(call: Call, x: Array, axes: list[int]) -> list[int]:
    keep = call.attribute("keepdims", int, 1)
    return [1 if d in axes else n for d, n in enumerate(x.shape) if keep or d not in axes]


def _moved(x: Array, axes: list[int]) -> Array:
    """(..., n): the reduced dimensions as one at the end."""
    rest = [d for d in range(x.ndim) if d not in axes]
    return np.transpose(x, [*rest, *axes]).reshape(*(x.shape[d] for d in rest), math.prod(x.shape[d] for d in axes))


def total(x: Array) -> Array:
    """Sums over the last dimension in a fixed order: exact for integers, in float64 for floats."""
    if x.dtype.kind in "iub":
        return np.sum(x, axis=-1, dtype=x.dtype)
    return np.asarray(sum_in_pairs(x.astype(np.float64)))


def _sum_like(kind: str, mean: bool, term: Callable[[Any], Any], after: str | None) -> Callable[..., Any]:
    """Sums of terms that have a kernel for float32."""

    def run(call: Call, x: Array, axes: Array | None = None) -> Any:
        chosen = _axes(call, x, axes)
        shape = _result_shape(call, x, chosen)
        if is_f32(x) and chosen:
            factor = 1.0 / max(math.prod(x.shape[d] for d in chosen), 1) if mean else 1.0
            if mean and not math.prod(x.shape[d] for d in chosen):
                factor = math.nan
            y = reduce_f32(call, kind, x, chosen, factor).reshape(shape)
            return Lowered(y if after is None else map_f32(call, after, y))
        if not chosen and kind == "sum":
            return np.array(x)
        terms = term(_moved(x, chosen) if chosen else x[..., None])
        y = total(terms)
        if mean:
            n = terms.shape[-1]
            y = y // n if x.dtype.kind in "iu" else y / n
        if after is not None:
            y = np.sqrt(y) if after == "sqrt" else functions.log(y.astype(np.float64))
        return np.asarray(y).astype(x.dtype).reshape(shape)

    return run


def log_sum_exp(call: Call, x: Array, axes: Array | None = None) -> Array:
    """log sum e^x, without overflow."""
    chosen = _axes(call, x, axes)
    wide = (_moved(x, chosen) if chosen else x[..., None]).astype(np.float64)
    most = np.max(wide, axis=-1, keepdims=True, initial=-np.inf)
    most = np.where(np.isfinite(most), most, 0.0)
    y = functions.log(total(functions.exp(wide - most))) + most[..., 0]
    return y.astype(x.dtype).reshape(_result_shape(call, x, chosen))


def _extreme(function: Any, empty: Callable[[np.dtype[Any]], Any]) -> Callable[..., Any]:
    def run(call: Call, x: Array, axes: Array | None = None) -> Any:
        chosen = _axes(call, x, axes)
        if not chosen:
            return np.array(x)
        if not math.prod(x.shape[d] for d in chosen):
            return np.full(_result_shape(call, x, chosen), empty(x.dtype), x.dtype)
        return np.asarray(function(x, axis=tuple(chosen))).reshape(_result_shape(call, x, chosen))

    return run


def _lowest(dtype: np.dtype[Any]) -> Any:
    return False if dtype == np.bool_ else -np.inf if dtype.kind not in "iu" else np.iinfo(dtype).min


def _highest(dtype: np.dtype[Any]) -> Any:
    return True if dtype == np.bool_ else np.inf if dtype.kind not in "iu" else np.iinfo(dtype).max


def product(call: Call, x: Array, axes: Array | None = None) -> Array:
    """Products: one chain over ascending elements, floats in float64."""
    chosen = _axes(call, x, axes)
    values = _moved(x, chosen) if chosen else x[..., None]
    wide = values if x.dtype.kind in "iu" else values.astype(np.float64)
    y = np.ones(wide.shape[:-1], wide.dtype)
    for i in range(wide.shape[-1]):
        y = y * wide[..., i]
    return y.astype(x.dtype).reshape(_result_shape(call, x, chosen))


def _running(function: Any, first: int) -> Callable[..., Any]:
    def run(call: Call, x: Array, axis: Array) -> Array:
        along = call.axis(whole_numbers(call, axis, "the axis")[0], x.ndim)
        backwards = call.attribute("reverse", int, 0)
        y = np.flip(x, along) if backwards else x
        if call.attribute("exclusive", int, 0):
            part = (slice(None),) * along
            start = np.full_like(y[(*part, slice(0, 1))], first)
            y = np.concatenate([start, y[(*part, slice(0, -1))]], along)
        y = function(y, axis=along, dtype=x.dtype)
        return np.flip(y, along) if backwards else y

    return run


_L1 = _sum_like("abs", False, np.abs, None)
_L2 = _sum_like("squares", False, lambda x: np.square(x.astype(np.float64)), "sqrt")
_LOG_SUM = _sum_like("sum", False, lambda x: x, "log")
_MEAN = _sum_like("sum", True, lambda x: x, None)
_SQUARES = _sum_like("squares", False, np.square, None)
_SUM = _sum_like("sum", False, lambda x: x, None)

REDUCTIONS: Table = {
    "CumProd": parametric(_running(np.cumprod, 1)),
    "CumSum": parametric(_running(np.cumsum, 0)),
    "ReduceL1": parametric(_L1),
    "ReduceL2": parametric(_L2),
    "ReduceLogSum": parametric(_LOG_SUM),
    "ReduceLogSumExp": parametric(log_sum_exp),
    "ReduceMax": parametric(_extreme(np.max, _lowest)),
    "ReduceMean": parametric(_MEAN),
    "ReduceMin": parametric(_extreme(np.min, _highest)),
    "ReduceProd": parametric(product),
    "ReduceSum": parametric(_SUM),
    "ReduceSumSquare": parametric(_SQUARES),
}
