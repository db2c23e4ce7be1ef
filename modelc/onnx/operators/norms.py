"""Normalisation and softmax."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from modelc.onnx import functions
from modelc.onnx.call import Call
from modelc.onnx.lowering import is_f32, norm_f32, pair_f32, softmax_f32
from modelc.onnx.operator import Lowered, Table
from modelc.onnx.operators.reductions import total
from modelc.onnx.values import Array


def _soft(kind: str) -> Any:
    def run(call: Call, x: Array) -> Any:
        axis = call.axis(call.attribute("axis", int, -1), x.ndim)
        if is_f32(x):
            return Lowered(softmax_f32(call, kind, x, axis))
        return softmax_of(x.astype(np.float64), axis, kind).astype(x.dtype)

    return run


def _soft_flat(kind: str) -> Any:
    """Before version 13: over all dimensions from `axis` on."""

    def run(call: Call, x: Array) -> Any:
        axis = call.axis(call.attribute("axis", int, 1), x.ndim)
        rows = x.reshape(math.prod(x.shape[:axis]), -1)
        if is_f32(x) and x.flags.c_contiguous:
            return Lowered(softmax_f32(call, kind, rows, 1).reshape(x.shape))
        return softmax_of(rows.astype(np.float64), 1, kind).reshape(x.shape).astype(x.dtype)

    return run


def softmax_of(wide: Array, axis: int, kind: str = "soft") -> Array:
    """Softmax in float64."""
    moved = np.moveaxis(wide, axis, -1)
    shifted = moved - np.max(moved, axis=-1, keepdims=True, initial=-np.inf)
    e = functions.exp(shifted)
    sums = total(e)[..., None]
    result = shifted - functions.log(sums) if kind == "log" else e / sums
    return np.moveaxis(result, -1, axis)


def softmax_masked(call: Call, x: Array) -> Any:
    """Softmax with 0 for NaN, as rows of only -inf would give: three nodes fused."""
    axis = call.axis(call.attribute("axis", int, -1), x.ndim)
    if is_f32(x):
        return Lowered(softmax_f32(call, "masked", x, axis))
    y = softmax_of(x.astype(np.float64), axis)
    return np.where(np.isnan(y), 0.0, y).astype(x.dtype)


def _hard(flat: bool) -> Any:
    def run(call: Call, x: Array) -> Array:
        axis = call.axis(call.attribute("axis", int, 1 if flat else -1), x.ndim)
        rows = x.reshape(math.prod(x.shape[:axis]), -1) if flat else np.moveaxis(x, axis, -1)
        best = np.argmax(rows, axis=-1)[..., None]
        y = (np.arange(rows.shape[-1]) == best).astype(x.dtype)
        return y.reshape(x.shape) if flat else np.moveaxis(y, -1, axis)

    return run


def layer_normalization(call: Call, x: Array, scale: Array, bias: Array | None = None) -> Any:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias over the dimensions from `axis` on."""
    axis = call.axis(call.attribute("axis", int, -1), x.ndim)
    eps = call.attribute("epsilon", float, 1e-5)
    n_rows = math.prod(x.shape[:axis])
    rest = x.shape[axis:]
    statistics = (*x.shape[:axis], *[1] * len(rest))
    fits = all(each is None or math.prod(each.shape) == math.prod(rest) for each in (scale, bias))
    if is_f32(x, scale, bias) and fits and x.size:
        means, deviations = call.empty((n_rows,)), call.empty((n_rows,))
        y = norm_f32(call, "layer", x, n_rows, eps, scale, bias, (means, deviations) if call.wants(1) else None)
        return Lowered(y, means.reshape(statistics), deviations.reshape(statistics)) if call.wants(1) else Lowered(y)
    wide = x.astype(np.float64).reshape(n_rows, -1)
    mean = total(wide)[:, None] / max(wide.shape[1], 1)
    deviation = 1.0 / np.sqrt(total((wide - mean) ** 2)[:, None] / max(wide.shape[1], 1) + eps)
    y = ((wide - mean) * deviation).reshape(x.shape) * scale
    y = (y if bias is None else y + bias).astype(x.dtype)
    kind = np.float32 if x.dtype != np.float64 else np.float64
    return y, mean.reshape(statistics).astype(kind), deviation.reshape(statistics).astype(kind)


def rms_normalization(call: Call, x: Array, scale: Array) -> Any:
    """X / sqrt(mean of x^2 + epsilon) * scale over the dimensions from `axis` on."""
    axis = call.axis(call.attribute("axis", int, -1), x.ndim)
    eps = call.attribute("epsilon", float, 1e-5)
    n_rows = math.prod(x.shape[:axis])
    if is_f32(x, scale) and scale.size == math.prod(x.shape[axis:]) and x.size:
        return Lowered(norm_f32(call, "rms", x, n_rows, eps, scale))
    wide = x.astype(np.float64).reshape(n_rows, -1)
    root = np.sqrt(total(wide * wide)[:, None] / max(wide.shape[1], 1) + eps)
    return ((wide / root).reshape(x.shape) * scale).astype(x.dtype)


def batch_normalization(call: Call, x: Array, scale: Array, bias: Array, mean: Array, variance: Array) -> Any:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias for each channel."""
    eps = call.attribute("epsilon", float, 1e-5)
    shape = (-1, *[1] * (x.ndim - 2)) if x.ndim > 1 else (-1,)
    if call.attribute("training_mode", int, 0):
        return _trained(call, x, scale, bias, mean, variance, eps, shape)
    factor = scale.astype(np.float64) / np.sqrt(variance.astype(np.float64) + eps)
    addend = bias.astype(np.float64) - mean.astype(np.float64) * factor
    if is_f32(x) and all(call.constant[1:5]):
        factors = call.prepared(1, scale, "factors", lambda: factor.astype(np.float32).reshape(shape))
        addends = call.prepared(2, bias, "addends", lambda: addend.astype(np.float32).reshape(shape))
        return Lowered(pair_f32(call, "add", pair_f32(call, "mul", x, factors), addends))
    return (x.astype(np.float64) * factor.reshape(shape) + addend.reshape(shape)).astype(x.dtype)


def _trained(
    call: Call, x: Array, scale: Array, bias: Array, mean: Array, variance: Array, eps: float, shape: Any
) -> tuple[Array, ...]:
    """With the batch's own mean and variance, and running ones."""
    momentum = call.attribute("momentum", float, 0.9)
    rows = np.moveaxis(x, 1, 0).reshape(x.shape[1], -1).astype(np.float64)
    own = total(rows) / rows.shape[1]
    spread = total((rows - own[:, None]) ** 2) / rows.shape[1]
    y = (x - own.reshape(shape)) / np.sqrt(spread.reshape(shape) + eps) * scale.reshape(shape) + bias.reshape(shape)
    running = mean * momentum + own * (1 - momentum), variance * momentum + spread * (1 - momentum)
    return y.astype(x.dtype), running[0].astype(mean.dtype), running[1].astype(variance.dtype)


def _grouped(call: Call, x: Array, n_rows: int, scale: Array, bias: Array) -> Any:
    """Rows normalised, then a factor and an addend for each channel."""
    eps = call.attribute("epsilon", float, 1e-5)
    shape = (-1, *[1] * (x.ndim - 2))
    if is_f32(x, scale, bias) and x.size:
        y = norm_f32(call, "layer", x, n_rows, eps).reshape(x.shape)
        return Lowered(pair_f32(call, "add", pair_f32(call, "mul", y, scale.reshape(shape)), bias.reshape(shape)))
    wide = x.astype(np.float64).reshape(n_rows, -1)
    mean = total(wide)[:, None] / wide.shape[1]
    y = (wide - mean) / np.sqrt(total((wide - mean) ** 2)[:, None] / wide.shape[1] + eps)
    return (y.reshape(x.shape) * scale.reshape(shape) + bias.reshape(shape)).astype(x.dtype)


def instance_normalization(call: Call, x: Array, scale: Array, bias: Array) -> Any:
    """Each channel of each image normalised."""
    return _grouped(call, x, math.prod(x.shape[:2]), scale, bias)


def group_normalization(call: Call, x: Array, scale: Array, bias: Array) -> Any:
    """Each group of channels normalised; before version 21 a scale for each group."""
    groups = call.attribute("num_groups", int)
    if groups < 1 or x.shape[1] % groups:
        raise call.fail("the channels are not whole groups", got=x.shape[1], expected=f"a multiple of {groups}")
    if scale.shape[0] == groups != x.shape[1]:
        scale, bias = (np.repeat(each, x.shape[1] // groups) for each in (scale, bias))
        return np.asarray(_unlowered(_grouped(call, x, x.shape[0] * groups, scale, bias)))
    return _grouped(call, x, x.shape[0] * groups, scale, bias)


def _unlowered(result: Any) -> Any:
    return result.outputs[0] if isinstance(result, Lowered) else result


def local_response(call: Call, x: Array) -> Array:
    """X over a power of the mean square of neighbouring channels."""
    size = call.attribute("size", int)
    alpha, beta = call.attribute("alpha", float, 1e-4), call.attribute("beta", float, 0.75)
    squares = x.astype(np.float64) ** 2
    sums = np.zeros_like(squares)
    channels = x.shape[1]
    for shift in range(-((size - 1) // 2), math.ceil((size - 1) / 2) + 1):
        start, stop = max(-shift, 0), min(channels - shift, channels)
        if start < stop:
            sums[:, start:stop] += squares[:, start + shift : stop + shift]
    divisor = functions.power(call.attribute("bias", float, 1.0) + alpha / size * sums, np.array(beta))
    return (x / divisor).astype(x.dtype)


def lp_normalization(call: Call, x: Array) -> Array:
    """X over its 1- or 2-norm along an axis; 0 where that is 0."""
    axis = call.axis(call.attribute("axis", int, -1), x.ndim)
    wide = np.moveaxis(x.astype(np.float64), axis, -1)
    p = call.attribute("p", int, 2)
    if p not in (1, 2):
        raise call.unsupported("this norm", got=p, expected="1 or 2")
    norm = (total(np.abs(wide)) if p == 1 else np.sqrt(total(wide * wide)))[..., None]
    return np.moveaxis(np.where(norm == 0, 0.0, wide / np.where(norm == 0, 1.0, norm)), -1, axis).astype(x.dtype)


def mean_variance_normalization(call: Call, x: Array) -> Array:
    """(x - mean) / standard deviation over some dimensions."""
    axes = sorted({call.axis(axis, x.ndim) for axis in call.integers("axes", [0, 2, 3])})
    rest = [d for d in range(x.ndim) if d not in axes]
    moved = np.transpose(x, [*rest, *axes])
    wide = moved.astype(np.float64).reshape(*(x.shape[d] for d in rest), -1)
    centred = wide - (total(wide) / wide.shape[-1])[..., None]
    spread = np.sqrt(total(centred * centred) / wide.shape[-1])[..., None] + 1e-9
    y = (centred / spread).reshape(moved.shape)
    return np.transpose(y, np.argsort([*rest, *axes])).astype(x.dtype)


NORMS: Table = {
    "BatchNormalization": batch_normalization,
    "GroupNormalization": group_normalization,
    "Hardmax": {1: _hard(True), 13: _hard(False)},
    "InstanceNormalization": instance_normalization,
    "LRN": local_response,
    "LayerNormalization": layer_normalization,
    "LogSoftmax": {1: _soft_flat("log"), 13: _soft("log")},
    "LpNormalization": lp_normalization,
    "MeanVarianceNormalization": mean_variance_normalization,
    "RMSNormalization": rms_normalization,
    "SimplifiedLayerNormalization": rms_normalization,  # what ONNX Runtime called it before it was ONNX's own
    "Softmax": {1: _soft_flat("soft"), 13: _soft("soft")},
}
FUSED_NORMS: Table = {"SoftmaxMasked": softmax_masked}
