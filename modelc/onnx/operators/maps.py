"""Functions of single elements: activations, exponentials, trigonometry, rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from modelc.onnx import functions
from modelc.onnx.call import Call
from modelc.onnx.lowering import is_f32, map_f32
from modelc.onnx.operator import Lowered, Operator, Table
from modelc.onnx.values import Array


def as_float(x: Array, function: Callable[[Any], Any]) -> Array:
    """`function` of the values in float64, as `x`'s own type."""
    result: Array = np.asarray(function(x.astype(np.float64))).astype(x.dtype)
    return result


def _compiled(name: str, function: Callable[[Any], Any]) -> Callable[[Call, Array], Any]:
    """A function that has a kernel for float32."""

    def run(call: Call, x: Array) -> Any:
        return Lowered(map_f32(call, name, x)) if is_f32(x) else as_float(x, function)

    return run


def _computed(function: Callable[[Any], Any]) -> Callable[[Call, Array], Any]:
    return lambda call, x: as_float(x, function)


def _plain(function: Callable[[Any], Any]) -> Callable[[Call, Array], Any]:
    """A function that NumPy computes exactly in every type."""
    return lambda call, x: np.asarray(function(x)).astype(x.dtype, copy=False)


def _truth(function: Callable[[Any], Any]) -> Callable[[Call, Array], Any]:
    return lambda call, x: function(x)


def _parameters(
    name: str, a: tuple[str, float], b: tuple[str, float] | float, function: Callable[[Any, float, float], Any]
) -> Callable[[Call, Array], Any]:
    """A function with parameters that are attributes, or constants."""

    def run(call: Call, x: Array) -> Any:
        first = call.attribute(a[0], float, a[1])
        second = call.attribute(b[0], float, b[1]) if isinstance(b, tuple) else b
        if is_f32(x):
            return Lowered(map_f32(call, name, x, first, second))
        return as_float(x, lambda wide: function(wide, first, second))

    return run


def absolute(call: Call, x: Array) -> Any:
    """|x|."""
    return Lowered(map_f32(call, "abs", x)) if is_f32(x) else np.abs(x)


def negative(call: Call, x: Array) -> Any:
    """-x."""
    return Lowered(map_f32(call, "neg", x)) if is_f32(x) else np.negative(x)


def relu(call: Call, x: Array) -> Any:
    """The larger of x and 0."""
    return Lowered(map_f32(call, "relu", x)) if is_f32(x) else np.maximum(x, np.zeros((), x.dtype))


def square_root(call: Call, x: Array) -> Any:
    """The square root, exact in every type."""
    return Lowered(map_f32(call, "sqrt", x)) if is_f32(x) else np.sqrt(x)


def gelu(call: Call, x: Array) -> Any:
    """x Phi(x), exactly or by tanh."""
    if call.choice("approximate", "none", ("none", "tanh")) == "tanh":
        return _compiled("gelu_tanh", _gelu_tanh)(call, x)
    return _compiled("gelu", _gelu)(call, x)


def _gelu(x: Any) -> Any:
    return 0.5 * x * (1.0 + functions.erf(x * 0.7071067811865476))


def _gelu_tanh(x: Any) -> Any:
    return 0.5 * x * (1.0 + functions.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def sigmoid(x: Any) -> Any:
    """1 / (1 + e^-x) in float64."""
    return 1.0 / (1.0 + functions.exp(-x))


def celu(call: Call, x: Array) -> Array:
    """max(0, x) + min(0, a (e^(x/a) - 1))."""
    a = call.attribute("alpha", float, 1.0)
    return as_float(x, lambda wide: np.maximum(0, wide) + np.minimum(0, a * functions.expm1(wide / a)))


def selu(call: Call, x: Array) -> Any:
    """g (a e^x - a) below 0, g x above."""
    a = call.attribute("alpha", float, 1.6732631921768188)
    gamma = call.attribute("gamma", float, 1.0507010221481323)
    if is_f32(x):
        return Lowered(map_f32(call, "elu", x, a * gamma, gamma))
    return as_float(x, lambda wide: gamma * np.where(wide > 0, wide, a * functions.expm1(wide)))


def thresholded_relu(call: Call, x: Array) -> Array:
    """X above the threshold, else 0."""
    return np.where(x > x.dtype.type(call.attribute("alpha", float, 1.0)), x, x.dtype.type(0))


def shrink(call: Call, x: Array) -> Array:
    """X moved towards 0 by `bias` outside of [-lambd, lambd], else 0."""
    limit, bias = call.attribute("lambd", float, 0.5), call.attribute("bias", float, 0.0)
    wide = x.astype(np.float64)
    return np.where(wide < -limit, wide + bias, np.where(wide > limit, wide - bias, 0.0)).astype(x.dtype)


def hard_swish(call: Call, x: Array) -> Any:
    """X * max(0, min(1, x / 6 + 1 / 2))."""
    if is_f32(x):
        return Lowered(map_f32(call, "hard_swish", x, 1 / 6, 0.5))
    return as_float(x, lambda wide: wide * np.clip(wide / 6 + 0.5, 0, 1))


def swish(call: Call, x: Array) -> Array:
    """X * sigmoid(alpha x)."""
    alpha = call.attribute("alpha", float, 1.0)
    if alpha == 1.0:
        return _compiled("silu", lambda wide: wide * sigmoid(wide))(call, x)
    return as_float(x, lambda wide: wide * sigmoid(alpha * wide))


def mish(x: Any) -> Any:
    """X tanh(softplus(x)) in float64."""
    return x * functions.tanh(functions.softplus(x))


def sign(call: Call, x: Array) -> Array:
    """-1, 0 or 1."""
    return np.sign(x)


def is_infinite(call: Call, x: Array) -> Array:
    """Whether x is infinite, of the signs that count."""
    wide = x.astype(np.float64)
    above = np.isposinf(wide) & bool(call.attribute("detect_positive", int, 1))
    below = np.isneginf(wide) & bool(call.attribute("detect_negative", int, 1))
    return above | below


def is_nan(call: Call, x: Array) -> Array:
    """Whether x is no number."""
    return np.isnan(x)


def clip(call: Call, x: Array, low: Array | None = None, high: Array | None = None) -> Any:
    """X between two limits, which are inputs."""
    return _clipped(call, x, low, high)


def clip_by_attributes(call: Call, x: Array) -> Any:
    """X between two limits, which are attributes."""
    low, high = call.optional("min", float), call.optional("max", float)
    return _clipped(call, x, *(None if limit is None else np.array(limit, x.dtype) for limit in (low, high)))


def _clipped(call: Call, x: Array, low: Array | None, high: Array | None) -> Any:
    if is_f32(x):
        bottom = -np.inf if low is None else float(low.reshape(()))
        top = np.inf if high is None else float(high.reshape(()))
        return Lowered(map_f32(call, "clip", x, bottom, top))
    y = x if low is None else np.maximum(x, low.reshape(()))
    y = y if high is None else np.minimum(y, high.reshape(()))
    return np.array(y)


def dropout(call: Call, x: Array, ratio: Array | None = None, training: Array | None = None) -> Any:
    """X itself; in training mode some elements become 0 and the others larger."""
    if training is None or not bool(training.reshape(())) or (ratio is not None and float(ratio.reshape(())) == 0):
        return (x, np.ones(x.shape, np.bool_)) if call.wants(1) else x
    from modelc.onnx.operators.random_numbers import uniform

    share = 0.5 if ratio is None else float(ratio.reshape(()))
    mask = uniform(call, x.shape) >= share
    return (np.where(mask, x / x.dtype.type(1 - share), x.dtype.type(0)).astype(x.dtype), mask)


def _bitwise_not(call: Call, x: Array) -> Array:
    return np.invert(x)


MAPS: Table = {
    "Abs": absolute,
    "Acos": _computed(functions.acos),
    "Acosh": _computed(functions.acosh),
    "Asin": _computed(functions.asin),
    "Asinh": _computed(functions.asinh),
    "Atan": _computed(functions.atan),
    "Atanh": _computed(functions.atanh),
    "BitwiseNot": _bitwise_not,
    "Ceil": _plain(np.ceil),
    "Celu": celu,
    "Clip": {6: clip_by_attributes, 11: Operator(clip, 1)},
    "Cos": _computed(functions.cos),
    "Cosh": _computed(functions.cosh),
    "Dropout": {7: Operator(dropout, 1), 12: Operator(dropout, 1, random=True)},
    "Elu": _parameters("elu", ("alpha", 1.0), 1.0, lambda x, a, b: np.where(x < 0, a * functions.expm1(x), x)),
    "Erf": _compiled("erf", functions.erf),
    "Exp": _compiled("exp", functions.exp),
    "Floor": _plain(np.floor),
    "Gelu": gelu,
    "HardSigmoid": _parameters(
        "hard_sigmoid", ("alpha", 0.2), ("beta", 0.5), lambda x, a, b: np.clip(a * x + b, 0.0, 1.0)
    ),
    "HardSwish": hard_swish,
    "IsInf": is_infinite,
    "IsNaN": is_nan,
    "LeakyRelu": _parameters("leaky_relu", ("alpha", 0.01), 0.0, lambda x, a, b: np.where(x < 0, a * x, x)),
    "Log": _compiled("log", functions.log),
    "Mish": _computed(mish),
    "Neg": negative,
    "Not": _truth(np.logical_not),
    "Reciprocal": _compiled("reciprocal", lambda x: 1.0 / x),
    "Relu": relu,
    "Round": _plain(np.rint),
    "Selu": selu,
    "Shrink": shrink,
    "Sigmoid": _compiled("sigmoid", sigmoid),
    "Sign": sign,
    "Sin": _computed(functions.sin),
    "Sinh": _computed(functions.sinh),
    "Softplus": _compiled("softplus", functions.softplus),
    "Softsign": _computed(lambda x: x / (1.0 + np.abs(x))),
    "Sqrt": square_root,
    "Swish": swish,
    "Tan": _computed(functions.tan),
    "Tanh": _compiled("tanh", functions.tanh),
    "ThresholdedRelu": thresholded_relu,
}
