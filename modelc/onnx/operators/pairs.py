"""Functions of two or more arrays that are broadcast against each other: arithmetic, comparisons, logic, bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from modelc.onnx import functions
from modelc.onnx.call import Call
from modelc.onnx.lowering import is_f32, map_f32, pair_f32
from modelc.onnx.operator import Lowered, Table
from modelc.onnx.operators.maps import as_float
from modelc.onnx.values import Array, is_small_float


def _room(call: Call, *arrays: Array) -> None:
    call.room(np.broadcast_shapes(*(array.shape for array in arrays)), arrays[0].dtype)


def _arithmetic(name: str, function: Callable[[Any, Any], Any]) -> Callable[[Call, Array, Array], Any]:
    def run(call: Call, a: Array, b: Array) -> Any:
        if a.dtype != b.dtype:
            raise call.fail("the inputs have different types", got=f"{a.dtype} and {b.dtype}")
        if is_f32(a, b):
            return Lowered(pair_f32(call, name, a, b))
        _room(call, a, b)
        return function(a, b)

    return run


def _divided(a: Array, b: Array) -> Array:
    """Quotients; of integers towards zero, 0 by 0."""
    if a.dtype.kind not in "iu":
        return a / b
    safe = np.where(b == 0, b.dtype.type(1), b)
    quotient = np.floor_divide(np.abs(a), np.abs(safe)) if a.dtype.kind == "i" else np.floor_divide(a, safe)
    signed = np.where((a < 0) != (b < 0), -quotient, quotient) if a.dtype.kind == "i" else quotient
    return np.where(b == 0, a.dtype.type(0), signed).astype(a.dtype)


def _compared(function: Callable[[Any, Any], Any]) -> Callable[[Call, Array, Array], Any]:
    def run(call: Call, a: Array, b: Array) -> Any:
        _room(call, a, b)
        return np.asarray(function(a, b)).astype(np.bool_)

    return run


def _bits(function: Callable[[Any, Any], Any]) -> Callable[[Call, Array, Array], Any]:
    def run(call: Call, a: Array, b: Array) -> Any:
        _room(call, a, b)
        return function(a, b)

    return run


def modulo(call: Call, a: Array, b: Array) -> Array:
    """The remainder; with the divisor's sign, or with `fmod` the dividend's."""
    _room(call, a, b)
    safe = np.where(b == 0, b.dtype.type(1), b) if b.dtype.kind in "iu" else b
    function = np.fmod if call.attribute("fmod", int, 0) else np.mod
    if is_small_float(a.dtype):
        return np.asarray(function(a.astype(np.float32), safe.astype(np.float32))).astype(a.dtype)
    return np.asarray(function(a, safe)).astype(a.dtype)


def power(call: Call, a: Array, b: Array) -> Any:
    """a^b in a's type."""
    _room(call, a, b)
    if is_f32(a) and b.size == 1 and call.constant[1] and float(b.reshape(())) == 2.0 and b.ndim <= a.ndim:
        return Lowered(map_f32(call, "square", a).reshape(np.broadcast_shapes(a.shape, b.shape)))
    if a.dtype.kind in "iu" and b.dtype.kind in "iu":
        return _whole_power(a, b)
    return functions.power(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)


def _whole_power(a: Array, b: Array) -> Array:
    """Exact powers of integers modulo the type's range; 1 / a^n rounded towards zero for negative exponents."""
    base, exponent = np.broadcast_arrays(a, b)
    negative = exponent < 0
    result = np.power(base, np.where(negative, 0, exponent).astype(a.dtype))
    inverse = np.where(base == 1, 1, np.where(base == -1, np.where(exponent % 2 == 0, 1, -1), 0))
    return np.where(negative, inverse.astype(a.dtype), result)


def _of_many(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def run(call: Call, *arrays: Array) -> Any:
        _room(call, *arrays)
        result = arrays[0]
        for array in arrays[1:]:
            result = function(result, array)
        return np.array(result)

    return run


def summed(call: Call, *arrays: Array) -> Any:
    """The sum of all inputs, from the first on."""
    if is_f32(*arrays) and len(arrays) > 1:
        total = arrays[0]
        for array in arrays[1:]:
            total = pair_f32(call, "add", total, array)
        return Lowered(total)
    return _of_many(np.add)(call, *arrays)


def mean(call: Call, *arrays: Array) -> Any:
    """The sum of all inputs over their number."""
    total = _of_many(np.add)(call, *arrays)
    return as_float(total, lambda wide: wide / len(arrays))


def prelu(call: Call, x: Array, slope: Array) -> Array:
    """slope * x below 0, else x."""
    return np.where(x < 0, x * slope, x).astype(x.dtype)


def where(call: Call, condition: Array, a: Array, b: Array) -> Array:
    """A where the condition holds, else b."""
    if a.dtype != b.dtype:
        raise call.fail("the inputs have different types", got=f"{a.dtype} and {b.dtype}")
    call.room(np.broadcast_shapes(condition.shape, a.shape, b.shape), a.dtype)
    return np.where(condition, a, b)


def bit_shift(call: Call, a: Array, b: Array) -> Array:
    """A shifted by b bits."""
    direction = call.choice("direction", "", ("LEFT", "RIGHT"))
    _room(call, a, b)
    bits = a.dtype.itemsize * 8
    amount = np.minimum(b.astype(np.int64), bits - 1).astype(a.dtype)
    shifted = np.left_shift(a, amount) if direction == "LEFT" else np.right_shift(a, amount)
    past = b.astype(np.int64) >= bits
    ones = np.where(a < 0, a.dtype.type(-1), a.dtype.type(0)) if a.dtype.kind == "i" else a.dtype.type(0)
    return np.where(past, ones if direction == "RIGHT" else a.dtype.type(0), shifted).astype(a.dtype)


PAIRS: Table = {
    "Add": _arithmetic("add", np.add),
    "And": _compared(np.logical_and),
    "BitShift": bit_shift,
    "BitwiseAnd": _bits(np.bitwise_and),
    "BitwiseOr": _bits(np.bitwise_or),
    "BitwiseXor": _bits(np.bitwise_xor),
    "Div": _arithmetic("div", _divided),
    "Equal": _compared(np.equal),
    "Greater": _compared(np.greater),
    "GreaterOrEqual": _compared(np.greater_equal),
    "Less": _compared(np.less),
    "LessOrEqual": _compared(np.less_equal),
    "Max": _of_many(np.maximum),
    "Mean": mean,
    "Min": _of_many(np.minimum),
    "Mod": modulo,
    "Mul": _arithmetic("mul", np.multiply),
    "Or": _compared(np.logical_or),
    "PRelu": prelu,
    "Pow": power,
    "Sub": _arithmetic("sub", np.subtract),
    "Sum": summed,
    "Where": where,
    "Xor": _compared(np.logical_xor),
}
