"""Quantized values: to and from them, and products of them, which are exact integers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from modelc.onnx.call import Call
from modelc.onnx.operator import Table
from modelc.onnx.operators.casts import converted, element_type
from modelc.onnx.operators.convolutions import convolved
from modelc.onnx.operators.matrices import product
from modelc.onnx.operators.windows import spatial, windows
from modelc.onnx.values import DTYPES, Array

# The least and largest numbers of integer types.
_INTEGERS: dict[np.dtype[Any], tuple[int, int]] = {
    DTYPES[f"{kind}{bits}"]: (0, 2**bits - 1) if kind == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for kind in "ui"
    for bits in (2, 4, 8, 16)
    if f"{kind}{bits}" in DTYPES
} | {DTYPES["i32"]: (-(2**31), 2**31 - 1)}


def _aligned(call: Call, scale: Array, x: Array) -> Array:
    """A scale or zero point with x's dimensions: one, one for each slice along `axis`, or one for each block of it."""
    if scale.size == 1:
        return scale.reshape(())
    axis = call.axis(call.attribute("axis", int, 1), x.ndim)
    block = call.attribute("block_size", int, 0)
    if scale.ndim == 1 and not block:
        if scale.shape[0] != x.shape[axis]:
            raise call.fail("the scale does not fit", got=list(scale.shape), expected=[x.shape[axis]])
        return scale.reshape([-1 if d == axis else 1 for d in range(x.ndim)])
    if block < 1 or scale.ndim != x.ndim or scale.shape[axis] != -(-x.shape[axis] // block):
        raise call.fail("the scale does not fit", got=list(scale.shape), expected=f"blocks of {block}")
    return np.take(np.repeat(scale, block, axis), range(x.shape[axis]), axis)


def quantize(call: Call, x: Array, scale: Array, zero: Array | None = None) -> Array:
    """round(x / scale) + zero, within the type's range."""
    number = call.attribute("output_dtype", int, 0)
    dtype = zero.dtype if zero is not None else element_type(call, number) if number else np.dtype(np.uint8)
    wide = np.dtype(np.float64) if DTYPES["f64"] in (x.dtype, scale.dtype) else np.dtype(np.float32)
    ratio = x.astype(wide) / _aligned(call, scale, x).astype(wide)
    if dtype in _INTEGERS:
        return _rounded(ratio, np.zeros((), dtype) if zero is None else _aligned(call, zero, x), dtype)
    if zero is not None:
        ratio = ratio + _aligned(call, zero, x).astype(wide)
    return converted(call, ratio, dtype)


def _rounded(values: Array, zero: Array, dtype: np.dtype[Any]) -> Array:
    least, most = _INTEGERS[dtype]
    shifted = np.rint(values) + zero.astype(np.int64)
    inside = np.clip(np.nan_to_num(shifted, nan=0.0), least, most)
    return inside.astype(np.int32).astype(dtype)


def dequantize(call: Call, x: Array, scale: Array, zero: Array | None = None) -> Array:
    """(x - zero) * scale, in the scale's type."""
    number = call.attribute("output_dtype", int, 0)
    dtype = element_type(call, number) if number else scale.dtype
    shifted: Array
    if x.dtype in _INTEGERS:
        whole = x.astype(np.int64)
        shifted = (whole if zero is None else whole - _aligned(call, zero, x).astype(np.int64)).astype(np.float32)
    else:
        shifted = x.astype(np.float32)
    return (shifted * _aligned(call, scale, x).astype(np.float32)).astype(dtype)


def dynamic_quantize(call: Call, x: Array) -> tuple[Array, Array, Array]:
    """X as uint8 with a scale and zero point that fit its range."""
    low = np.minimum(np.min(x, initial=np.inf), 0).astype(np.float32)
    high = np.maximum(np.max(x, initial=-np.inf), 0).astype(np.float32)
    scale = ((high - low) / np.float32(255)).astype(np.float32)
    divisor = scale if scale > 0 else np.float32(1)
    zero = np.clip(np.rint(-low / divisor), 0, 255).astype(np.uint8)
    return _rounded(x / divisor, zero, np.dtype(np.uint8)), np.asarray(scale), np.asarray(zero)


def _shifted(x: Array, zero: Array | None, by_row: bool) -> Array:
    """X - zero as int32; a vector of zero points belongs to rows or columns."""
    wide = x.astype(np.int32)
    if zero is None:
        return wide
    whole = zero.astype(np.int32)
    if whole.size == 1:
        return wide - whole.reshape(())
    return wide - (whole[..., None] if by_row and whole.ndim == 1 else whole)


def matmul_integer(call: Call, a: Array, b: Array, zero_a: Array | None = None, zero_b: Array | None = None) -> Array:
    """(A - zero) @ (B - zero), int32."""
    columns = partial(_columns, call, b, zero_b)
    fixed = zero_b is None or (len(call.constant) > ZERO_B and call.constant[ZERO_B])
    return _integer_product(
        call, _shifted(a, zero_a, True), call.prepared(1, b, "integers", columns) if fixed else columns()
    )


ZERO_B = 3  # input of MatMulInteger
EXACT_TERMS = (1 << 24) // (255 * 255)  # products of two bytes that float32 adds without rounding


def _columns(call: Call, b: Array, zero: Array | None) -> list[Array]:
    """B - zero in float32, cut along its rows into parts whose sums of products float32 holds exactly."""
    wide = _shifted(b, zero, False).astype(np.float32)
    return [wide[..., start : start + EXACT_TERMS, :] for start in range(0, max(wide.shape[-2], 1), EXACT_TERMS)]


def _integer_product(call: Call, a: Array, columns: list[Array]) -> Array:
    """A @ B, int32: exact, on the float32 kernel."""
    wide = a.astype(np.float32)
    y = np.zeros((), np.int32)
    for i, part in enumerate(columns):
        start = i * EXACT_TERMS
        y = y + product(call, wide[..., start : start + part.shape[-2]], part).astype(np.int32)
    return y


def _requantized(y: Array, factor: Array, zero: Array) -> Array:
    return _rounded(y.astype(np.float32) * factor.astype(np.float32), zero, zero.dtype)


def qlinear_matmul(
    call: Call,
    a: Array,
    scale_a: Array,
    zero_a: Array,
    b: Array,
    scale_b: Array,
    zero_b: Array,
    scale_y: Array,
    zero_y: Array,
) -> Array:
    """A product of quantized matrices, quantized again."""
    y = _integer_product(call, _shifted(a, zero_a, True), _columns(call, b, zero_b))
    rows = scale_a[..., None] if scale_a.ndim == 1 and scale_a.size > 1 else scale_a
    factor = rows.astype(np.float32) * scale_b.astype(np.float32) / scale_y.astype(np.float32)
    return _requantized(y, factor, zero_y)


def _integer_conv(call: Call, x: Array, weight: Array, zero_x: Array | None, zero_w: Array | None) -> Array:
    sizes = spatial(call, x)
    where = windows(call, sizes, call.integers("kernel_shape", weight.shape[2:], len(sizes)))
    wide = x.astype(np.int32) - (0 if zero_x is None else zero_x.astype(np.int32).reshape(()))
    shape = [-1, *[1] * (weight.ndim - 1)] if zero_w is not None and zero_w.size > 1 else []
    weights = weight.astype(np.int32) - (0 if zero_w is None else zero_w.astype(np.int32).reshape(shape))
    return convolved(call, wide.astype(np.float64), weights.astype(np.float64), None, where)


def conv_integer(
    call: Call, x: Array, weight: Array, zero_x: Array | None = None, zero_w: Array | None = None
) -> Array:
    """A convolution of integers, int32."""
    return _integer_conv(call, x, weight, zero_x, zero_w).astype(np.int32)


def qlinear_conv(
    call: Call,
    x: Array,
    scale_x: Array,
    zero_x: Array,
    weight: Array,
    scale_w: Array,
    zero_w: Array,
    scale_y: Array,
    zero_y: Array,
    bias: Array | None = None,
) -> Array:
    """A convolution of quantized values, quantized again."""
    y = _integer_conv(call, x, weight, zero_x, zero_w).astype(np.int64)
    shape = [-1, *[1] * (x.ndim - 2)]
    if bias is not None:
        y = y + bias.reshape(shape)
    factor = scale_x.astype(np.float32) * scale_w.astype(np.float32) / scale_y.astype(np.float32)
    return _requantized(y, factor.reshape(shape) if factor.size > 1 else factor.reshape(()), zero_y)


QUANTIZATION: Table = {
    "ConvInteger": conv_integer,
    "DequantizeLinear": dequantize,
    "DynamicQuantizeLinear": dynamic_quantize,
    "MatMulInteger": matmul_integer,
    "QLinearConv": qlinear_conv,
    "QLinearMatMul": qlinear_matmul,
    "QuantizeLinear": quantize,
}
