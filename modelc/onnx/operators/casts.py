"""Changes of the element type, and values made from nothing but sizes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from modelc.onnx.call import Call
from modelc.onnx.operator import Operator, Table
from modelc.onnx.values import BY_NUMBER, DTYPES, Array, type_name

# The largest numbers of 8-bit floats.
_FLOAT8 = {"f8_e4m3": 448.0, "f8_e4m3fnuz": 240.0, "f8_e5m2": 57344.0, "f8_e5m2fnuz": 57344.0}
_SMALL_INTS = {"i4": 4, "u4": 4, "i2": 2, "u2": 2}  # and their bits
_STRING = np.dtype(object)


def element_type(call: Call, number: int) -> np.dtype[Any]:
    """An element type by ONNX's number."""
    if number not in BY_NUMBER:
        raise call.fail("no such element type", got=number)
    return BY_NUMBER[number]


def cast(call: Call, x: Array) -> Array:
    """X in the element type `to`."""
    return converted(call, x, element_type(call, call.attribute("to", int)))


def cast_like(call: Call, x: Array, like: Array) -> Array:
    """X in the element type of the second input."""
    return converted(call, x, like.dtype)


def converted(call: Call, x: Array, dtype: np.dtype[Any]) -> Array:
    """X in another element type; what is too large for an 8-bit float becomes its largest unless `saturate` is 0."""
    if x.dtype == dtype:
        return x.copy()
    if dtype == _STRING:
        return np.array([_text(value) for value in x.reshape(-1).tolist()], object).reshape(x.shape)
    if x.dtype == _STRING:
        numbers = np.array([float(value) for value in x.reshape(-1)])
        return numbers.astype(dtype).reshape(x.shape)
    call.room(x.shape, dtype)
    name = type_name(dtype)
    if name in _FLOAT8 and call.attribute("saturate", int, 1):
        return np.clip(x.astype(np.float32), -_FLOAT8[name], _FLOAT8[name]).astype(dtype)
    if name == "f8_e8m0":
        return _power_of_two(call, x.astype(np.float32)).view(dtype)
    if name in _SMALL_INTS:
        return _wrapped(x, name)
    if x.dtype.kind == "V" or dtype.kind == "V":  # types that NumPy knows through float32 only
        x = x.astype(np.float32) if x.dtype.kind == "V" else x
    return x.astype(dtype)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "INF" if value > 0 else "-INF"
        return np.format_float_positional(np.float32(value), trim="-") if np.float32(value) == value else repr(value)
    return str(value)


def _wrapped(x: Array, name: str) -> Array:
    """The low bits of whole numbers."""
    bits = _SMALL_INTS[name]
    whole = np.trunc(x.astype(np.float64)).astype(np.int64) & ((1 << bits) - 1)
    if name.startswith("i"):
        whole = np.where(whole >= 1 << (bits - 1), whole - (1 << bits), whole)
    return whole.astype(np.int8).astype(DTYPES[name])


def _power_of_two(call: Call, x: Array) -> Array:
    """The exponent alone, rounded as asked."""
    mode = call.choice("round_mode", "up", ("up", "down", "nearest"))
    bits = x.view(np.uint32)
    exponent = ((bits >> 23) & 255).astype(np.int64)
    rest = bits & 0x7FFFFF
    more = {"up": rest > 0, "down": np.zeros(x.shape, bool), "nearest": rest >= 0x400000}[mode]
    code = np.minimum(exponent + more, 254)
    code = np.where(np.isnan(x) | (np.isinf(x) & (not call.attribute("saturate", int, 1))), 255, code)
    return code.astype(np.uint8)


def bit_cast(call: Call, x: Array) -> Array:
    """The same bits under another type of the same size."""
    dtype = element_type(call, call.attribute("to", int))
    if dtype.itemsize != x.dtype.itemsize or {type_name(dtype), type_name(x.dtype)} & _SMALL_INTS.keys():
        raise call.unsupported("a cast of bits between types of different sizes", got=f"{x.dtype} to {dtype}")
    return np.array(x, order="C").view(dtype)


def range_(call: Call, start: Array, limit: Array, step: Array) -> Array:
    """start, start + step, ... before limit."""
    first, last, by = (each.reshape(-1)[0] for each in (start, limit, step))
    if by == 0:
        raise call.fail("a step of 0")
    kind = float if start.dtype.kind not in "iu" else int
    count = max(int(np.ceil((kind(last) - kind(first)) / kind(by))), 0)
    call.room((count,), start.dtype)
    steps = np.arange(count)
    if kind is int:
        return (int(first) + steps * int(by)).astype(start.dtype)
    return (float(first) + steps * float(by)).astype(start.dtype)


def eye_like(call: Call, x: Array) -> Array:
    """1 on a diagonal, 0 elsewhere."""
    number = call.optional("dtype", int)
    if x.ndim != 2:
        raise call.fail("not a matrix", got=list(x.shape))
    k = call.attribute("k", int, 0)
    inside = np.arange(x.shape[1]) - np.arange(x.shape[0])[:, None] == k
    return inside.astype(x.dtype if number is None else element_type(call, number))


CASTS: Table = {
    "BitCast": bit_cast,
    "Cast": cast,
    "CastLike": cast_like,
    "EyeLike": Operator(eye_like),
    "Range": range_,
}
