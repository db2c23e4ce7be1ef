"""Products of matrices, on modelc's own kernels in float32 and float64, exact in integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from modelc.onnx.call import Call
from modelc.onnx.lowering import contiguous, is_f32, map_f32, offsets, pair_f32
from modelc.onnx.machine import address
from modelc.onnx.operator import Lowered, Table
from modelc.onnx.values import Array, is_small_float


def matmul(call: Call, a: Array, b: Array) -> Any:
    """A @ b, with NumPy's rules for dimensions."""
    _check(call, a, b)
    if is_f32(a, b):
        return Lowered(product_f32(call, a, b))
    if is_small_float(a.dtype):
        wide = call.prepared(1, b, "wide", lambda: b.astype(np.float32))
        return product_f32(call, a.astype(np.float32), wide).astype(a.dtype)
    return product(call, a, b)


def product(call: Call, a: Array, b: Array) -> Array:
    """A @ b in any type, computed at once: small floats in float32, float64 and integers as they are."""
    _check(call, a, b)
    if a.dtype.kind in "iub":
        return np.matmul(a, b)
    if is_small_float(a.dtype) or is_f32(a):
        return product_f32(call, a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)
    return _product_f64(call, a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)


def _check(call: Call, a: Array, b: Array) -> None:
    inner = (a.shape[-1] if a.ndim else 0, b.shape[-2] if b.ndim > 1 else b.shape[0] if b.ndim else 0)
    if not a.ndim or not b.ndim or inner[0] != inner[1] or a.dtype != b.dtype:
        got = f"{a.dtype} {list(a.shape)} and {b.dtype} {list(b.shape)}"
        raise call.fail("the matrices do not fit", got=got)


def product_f32(call: Call, a: Array, b: Array, bias: Array | None = None, index: int = 1) -> Array:
    """A @ b [+ bias of b's columns] by instructions; b is input `index` of the node."""
    left = a[None] if a.ndim == 1 else a
    right = b[:, None] if b.ndim == 1 else b
    k, n = right.shape[-2:]
    panels = call.prepared(index, b, "panels", lambda: panels_of(call, right))
    if right.ndim == 2 and left.ndim > 2:
        left = contiguous(call, left).reshape(-1, k)
    elif left.strides[-1] != 4 or left.strides[-2] % 4 or left.strides[-2] < 4 * k:
        left = contiguous(call, left)
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    m = left.shape[-2]
    y = call.empty((*batch, m, n))
    if y.size:
        panel_floats = -(-n // 16) * 16 * k
        order = _contiguous_steps(right.shape[:-2], panel_floats)
        steps_b = _broadcast_steps(right.shape[:-2], order, batch)
        steps_a = _broadcast_steps(left.shape[:-2], [by // 4 for by in left.strides[:-2]], batch)
        places = offsets(batch, steps_a, steps_b, _contiguous_steps(batch, m * n))
        lda = left.strides[-2] // 4 if m > 1 else k
        bias_place = 0 if bias is None else address(bias)
        fields = (address(left), address(panels), address(y), m, n, k, lda, n, bias_place, math.prod(batch))
        call.emit("array_gemm", *fields, call.numbers(places), work=math.prod(batch) * m * n * k)
    if right.ndim == 2 and a.ndim > 2:
        y = y.reshape(*a.shape[:-1], n)
    if a.ndim == 1:
        y = y.reshape(*batch, n)
    return y.reshape(y.shape[:-1]) if b.ndim == 1 else y


def panels_of(call: Call, b: Array) -> Array:
    """Matrices (..., k, n) in the order in which the kernel reads them."""
    k, n = b.shape[-2:]
    batch = b.shape[:-2]
    floats = -(-n // 16) * 16 * k
    panels = call.empty((math.prod(batch) * floats,))
    if panels.size:
        if any(by % 4 for by in b.strides):
            b = contiguous(call, b)
        places = offsets(batch, [by // 4 for by in b.strides[:-2]], _contiguous_steps(batch, floats))
        by_k, by_n = (by // 4 for by in b.strides[-2:])
        fields = (address(b), address(panels), k, n, by_k, by_n, math.prod(batch))
        call.emit("array_panels", *fields, call.numbers(places), work=panels.size)
    return panels


def _contiguous_steps(shape: tuple[int, ...], unit: int) -> list[int]:
    steps = []
    for size in reversed(shape):
        steps.append(unit)
        unit *= size
    return steps[::-1]


def _broadcast_steps(shape: tuple[int, ...], steps: Any, target: tuple[int, ...]) -> list[int]:
    own = [0 if size == 1 else by for size, by in zip(shape, steps, strict=True)]
    return [0] * (len(target) - len(shape)) + own


def _product_f64(call: Call, a: Array, b: Array) -> Array:
    left = a[None] if a.ndim == 1 else a
    right = b[:, None] if b.ndim == 1 else b
    left, right = contiguous(call, left), contiguous(call, right)
    (m, k), n = left.shape[-2:], right.shape[-1]
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    y = call.empty((*batch, m, n), np.float64)
    if y.size:
        steps = (
            _broadcast_steps(left.shape[:-2], _contiguous_steps(left.shape[:-2], m * k), batch),
            _broadcast_steps(right.shape[:-2], _contiguous_steps(right.shape[:-2], k * n), batch),
            _contiguous_steps(batch, m * n),
        )
        fields = (address(left), address(right), address(y), m, n, k, math.prod(batch))
        call.emit("array_gemm_f64", *fields, call.numbers(offsets(batch, *steps)), work=y.size * k)
    if a.ndim == 1:
        y = y.reshape(*batch, n)
    return y.reshape(y.shape[:-1]) if b.ndim == 1 else y


def gemm(call: Call, a: Array, b: Array, c: Array | None = None) -> Any:
    """Alpha A B + beta C, A and B transposed where asked for."""
    alpha, beta = call.attribute("alpha", float, 1.0), call.attribute("beta", float, 1.0)
    if a.ndim != 2 or b.ndim != 2:
        raise call.fail("not matrices", got=f"{list(a.shape)} and {list(b.shape)}")
    left = a.T if call.attribute("transA", int, 0) else a
    right = b.T if call.attribute("transB", int, 0) else b
    _check(call, left, right)
    if c is not None and np.broadcast_shapes(c.shape, (left.shape[0], right.shape[1])) != (len(left), right.shape[1]):
        raise call.fail("C does not fit", got=list(c.shape), expected=[left.shape[0], right.shape[1]])
    if not is_f32(a, b, c):
        y = product(call, left, right)
        if c is None or beta == 0:
            return np.asarray(_times(y, alpha)).astype(a.dtype)
        return np.asarray(_times(y, alpha) + _times(c, beta)).astype(a.dtype)
    panels = call.prepared(1, b, f"panels {right is not b}", lambda: panels_of(call, right))
    plain = alpha == 1.0 and beta == 1.0 and c is not None and c.shape in ((right.shape[1],), (1, right.shape[1]))
    bias = contiguous(call, c) if plain and c is not None else None
    y = _with_panels(call, left, panels, right.shape[1], bias)
    if plain:
        return Lowered(y)
    if alpha != 1.0:
        y = map_f32(call, "affine", y, alpha, 0.0)
    if c is not None and beta != 0.0:
        y = pair_f32(call, "add", y, c if beta == 1.0 else map_f32(call, "affine", c, beta, 0.0))
    return Lowered(y)


def _times(x: Array, factor: float) -> Any:
    return x if factor == 1.0 else x * (int(factor) if x.dtype.kind in "iu" else x.dtype.type(factor))


def _with_panels(call: Call, a: Array, panels: Array, n: int, bias: Array | None) -> Array:
    a = contiguous(call, a)
    m, k = a.shape
    y = call.empty((m, n))
    if y.size:
        bias_place = 0 if bias is None else address(bias)
        fields = (address(a), address(panels), address(y), m, n, k, k, n, bias_place, 1, call.numbers([0, 0, 0]))
        call.emit("array_gemm", *fields, work=m * n * k)
    return y


def linear(call: Call, x: Array, weight: Array, bias: Array) -> Any:
    """X @ weight + bias: a product and the addition after it, fused."""
    _check(call, x, weight)
    if is_f32(x, weight, bias) and weight.ndim == 2 and bias.shape == weight.shape[1:]:
        return Lowered(product_f32(call, x, weight, contiguous(call, bias)))
    return np.asarray(product(call, x, weight) + bias)


def determinant(call: Call, x: Array) -> Array:
    """Determinants of the last two dimensions, by elimination with pivots in float64."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise call.fail("not square matrices", got=list(x.shape))
    n = x.shape[-1]
    rows = x.astype(np.float64).reshape(-1, n, n).copy()
    result = np.ones(len(rows))
    for matrix, place in zip(rows, range(len(rows)), strict=True):
        for i in range(n):
            pivot = i + int(np.argmax(np.abs(matrix[i:, i])))
            if pivot != i:
                matrix[[i, pivot]] = matrix[[pivot, i]]
                result[place] = -result[place]
            result[place] *= matrix[i, i]
            if matrix[i, i] != 0:
                matrix[i + 1 :] -= matrix[i + 1 :, i : i + 1] / matrix[i, i] * matrix[i]
    return result.reshape(x.shape[:-2]).astype(x.dtype)


MATRICES: Table = {"Det": determinant, "Gemm": gemm, "MatMul": matmul}
FUSED_MATRICES: Table = {"Linear": linear}
