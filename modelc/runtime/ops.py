"""Operations of neural networks on NumPy arrays, with the same bits on every CPU.

For experiments, tests and small models: a model that is run has faster kernels of its own. Values are float32 in and
out, every function returns a new array, and leading dimensions are batches.

Sums are made in pairs: a list is folded in half (element i plus element i + ceil(n / 2)) until one is left. The order
depends on the length alone. Rows of a batch never touch each other.
"""

from __future__ import annotations

from math import isfinite, prod
from numbers import Integral, Real
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from modelc.errors import BadInputError
from modelc.models.frequencies import RopeScaling, rope_frequencies
from modelc.runtime import elementary

F32 = npt.NDArray[np.float32]
Number = TypeVar("Number", bound=np.floating[Any])
CHUNK_ELEMENTS = 1 << 20  # of products at a time: they stay in a core's cache


def matmul(a: npt.ArrayLike, b: npt.ArrayLike) -> F32:
    """a (..., m, k) @ b (..., k, n) -> (..., m, n); products and sums are rounded to float32."""
    left, right = _floats("a", a, 2), _floats("b", b, 2)
    return _products(left, np.swapaxes(right, -1, -2), "b")


def linear(x: npt.ArrayLike, weight: npt.ArrayLike, bias: npt.ArrayLike | None = None) -> F32:
    """x (..., k) @ weight (n, k)^T + bias (n,) -> (..., n), as layers keep their weights."""
    rows, matrix = _floats("x", x, 1), _floats("weight", weight, 2)
    if matrix.ndim != 2:
        raise _wrong("weight", matrix, "two dimensions")
    flat = rows.reshape(prod(rows.shape[:-1]), rows.shape[-1])
    y = _products(flat, matrix, "weight").reshape(*rows.shape[:-1], len(matrix))
    if bias is None:
        return y
    offsets = _floats("bias", bias, 1)
    if offsets.shape != (len(matrix),):
        raise _wrong("bias", offsets, f"[{len(matrix)}]")
    return y + offsets


def softmax(x: npt.ArrayLike, axis: int = -1) -> F32:
    """e^x / sum of e^x along `axis`; a slice of only -inf gives zeros."""
    given = _floats("x", x, 1)
    if not isinstance(axis, Integral) or not -given.ndim <= axis < given.ndim:
        raise BadInputError("no such axis", param="axis", got=axis, expected=f"{-given.ndim} to {given.ndim - 1}")
    values = np.moveaxis(given, axis, -1)
    if values.shape[-1] == 0:
        return given
    most = values.max(axis=-1, keepdims=True)
    most = np.where(np.isneginf(most), np.float32(0), most)
    weights = elementary.exp((values - most).astype(np.float64))
    total = sum_in_pairs(weights)[..., None]
    shares = np.divide(weights, total, out=np.zeros_like(weights), where=total != 0)
    return np.moveaxis(shares, -1, axis).astype(np.float32)


def layer_norm(
    x: npt.ArrayLike, weight: npt.ArrayLike | None = None, bias: npt.ArrayLike | None = None, eps: float = 1e-5
) -> F32:
    """(x - mean) / sqrt(variance + eps) * weight + bias over the last axis; sums in float64."""
    values, least = _floats("x", x, 1), _number("eps", eps)
    wide = values.astype(np.float64)
    centred = wide - sum_in_pairs(wide)[..., None] / max(values.shape[-1], 1)
    variance = sum_in_pairs(centred * centred)[..., None] / max(values.shape[-1], 1)
    return _scaled((centred / np.sqrt(variance + least)).astype(np.float32), weight, bias)


def rms_norm(x: npt.ArrayLike, weight: npt.ArrayLike | None = None, eps: float = 1e-5) -> F32:
    """x / sqrt(mean of x^2 + eps) * weight over the last axis; sums in float64."""
    values, least = _floats("x", x, 1), _number("eps", eps)
    wide = values.astype(np.float64)
    mean = sum_in_pairs(wide * wide)[..., None] / max(values.shape[-1], 1)
    return _scaled((wide / np.sqrt(mean + least)).astype(np.float32), weight, None)


def relu(x: npt.ArrayLike) -> F32:
    """0 where x < 0, else x."""
    return np.maximum(_floats("x", x, 0), np.float32(0))


def sigmoid(x: npt.ArrayLike) -> F32:
    """1 / (1 + e^-x)."""
    return _sigmoid(_floats("x", x, 0).astype(np.float64)).astype(np.float32)


def silu(x: npt.ArrayLike) -> F32:
    """x / (1 + e^-x)."""
    wide = _floats("x", x, 0).astype(np.float64)
    return _gated(wide, _sigmoid(wide))


def gelu(x: npt.ArrayLike, approximate: Literal["none", "tanh"] = "none") -> F32:
    """x * Phi(x): with the error function, or with `tanh` by GPT-2's formula."""
    wide = _floats("x", x, 0).astype(np.float64)
    if approximate == "none":
        return _gated(wide, 0.5 + 0.5 * elementary.erf(wide * 0.7071067811865476))
    if approximate != "tanh":
        raise BadInputError("no such form of gelu", param="approximate", got=approximate, expected="none or tanh")
    inside = np.clip(wide, -100.0, 100.0)
    return _gated(wide, _sigmoid(1.5957691216057308 * (inside + 0.044715 * inside * inside * inside)))


def rope(
    x: npt.ArrayLike,
    positions: npt.ArrayLike,
    theta: float = 10000.0,
    *,
    interleaved: bool = False,
    scaling: RopeScaling | None = None,
) -> F32:
    """Rotates pairs of columns by position * frequency.

    Args:
        x: (..., n_tokens, head_dim), head_dim even.
        positions: (n_tokens,), whole numbers.
        theta: Base of the frequencies, theta^(-2i / head_dim).
        interleaved: Whether pair i is columns 2i and 2i + 1; else it is i and i + head_dim / 2.
        scaling: For contexts longer than the trained one.

    Returns:
        (..., n_tokens, head_dim).
    """
    values, places = _floats("x", x, 2), _array("positions", positions, "whole numbers")
    head_dim = values.shape[-1]
    if head_dim % 2:
        raise _wrong("x", values, "an even last dimension")
    if places.shape != values.shape[-2:-1] or not np.issubdtype(places.dtype, np.integer):
        raise _wrong("positions", places, f"whole numbers, [{values.shape[-2]}]")
    if _number("theta", theta) < 1:
        raise BadInputError("out of range", param="theta", got=theta, expected="a number from 1")
    if scaling is not None and not isinstance(scaling, RopeScaling):
        raise BadInputError("wrong type", param="scaling", got=type(scaling).__name__, expected="a RopeScaling")
    frequencies = rope_frequencies(head_dim, theta, scaling)
    sine, cosine = elementary.sincos(places.astype(np.float64)[:, None] * frequencies)
    magnitude = scaling.magnitude if scaling else 1.0
    sine, cosine = (sine * magnitude).astype(np.float32), (cosine * magnitude).astype(np.float32)
    half = head_dim // 2
    first, second = (slice(0, None, 2), slice(1, None, 2)) if interleaved else (slice(0, half), slice(half, None))
    rotated = np.empty_like(values)
    rotated[..., first] = values[..., first] * cosine - values[..., second] * sine
    rotated[..., second] = values[..., first] * sine + values[..., second] * cosine
    return rotated


def attention(
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    *,
    causal: bool = False,
    mask: npt.ArrayLike | None = None,
    scale: float | None = None,
) -> F32:
    """softmax(q k^T * scale) v for each head.

    Args:
        q: (..., n_heads, n_queries, head_dim).
        k: (..., n_kv_heads, n_keys, head_dim); n_kv_heads divides n_heads, neighbouring heads share one.
        v: (..., n_kv_heads, n_keys, v_dim).
        causal: Whether a query sees only keys up to its own position; the last query stands at the last key.
        mask: Truth values, broadcast to (..., n_heads, n_queries, n_keys); False hides a key.
        scale: 1 / sqrt(head_dim) when None.

    Returns:
        (..., n_heads, n_queries, v_dim); zeros for a query that sees no key.
    """
    queries, keys, values = _floats("q", q, 3), _floats("k", k, 3), _floats("v", v, 3)
    n_heads, n_queries, head_dim = queries.shape[-3:]
    n_kv_heads, n_keys = keys.shape[-3:-1]
    if n_kv_heads == 0 or n_heads % n_kv_heads:
        raise _wrong("k", keys, f"a number of heads that divides {n_heads}")
    if values.shape[:-1] != keys.shape[:-1]:
        raise _wrong("v", values, f"{[*keys.shape[:-1], 'v_dim']}")
    keys, values = (np.repeat(heads, n_heads // n_kv_heads, axis=-3) for heads in (keys, values))
    factor = np.float32(head_dim**-0.5 if scale is None else _number("scale", scale))
    scores = _products(queries, keys, "k") * factor
    seen = np.ones((n_queries, n_keys), np.bool_)
    if causal:
        seen = np.tri(n_queries, n_keys, n_keys - n_queries, dtype=np.bool_)
    if mask is not None:
        hidden = _array("mask", mask, f"truth values for {list(scores.shape)}")
        try:
            seen = np.broadcast_to(seen & hidden.astype(np.bool_), scores.shape)
        except ValueError:
            raise _wrong("mask", hidden, f"truth values for {list(scores.shape)}") from None
    return _products(softmax(np.where(seen, scores, np.float32(-np.inf))), np.swapaxes(values, -1, -2), "v")


def _products(a: F32, b: F32, param: str) -> F32:
    """a (..., m, k), b (..., n, k) -> (..., m, n): sums over k in pairs."""
    if a.shape[-1] != b.shape[-1]:
        raise _wrong(param, b, f"{a.shape[-1]} inner elements")
    try:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise _wrong(param, b, f"leading dimensions like {list(a.shape[:-2])}") from None
    m, n, k = a.shape[-2], b.shape[-2], a.shape[-1]
    y = np.zeros((*batch, m, n), np.float32)
    if k == 0 or y.size == 0:
        return y
    lefts = np.broadcast_to(a, (*batch, m, k)).reshape(-1, m, k)
    rights = np.broadcast_to(b, (*batch, n, k)).reshape(-1, n, k)
    step = max(CHUNK_ELEMENTS // k, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        for left, right, target in zip(lefts, rights, y.reshape(-1, m, n), strict=True):
            for row in range(m):
                for start in range(0, n, step):
                    target[row, start : start + step] = sum_in_pairs(right[start : start + step] * left[row])
    return y


def sum_in_pairs(terms: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """The sums along the last axis, in pairs."""
    if terms.shape[-1] == 0:
        return np.zeros(terms.shape[:-1], terms.dtype)
    while terms.shape[-1] > 1:
        half = -(-terms.shape[-1] // 2)
        folded = terms[..., :half].copy()
        folded[..., : terms.shape[-1] - half] += terms[..., half:]
        terms = folded
    return terms[..., 0]


def _sigmoid(x: elementary.F64) -> elementary.F64:
    return 1.0 / (1.0 + elementary.exp(-x))


def _gated(x: elementary.F64, gate: elementary.F64) -> F32:
    """x * gate; 0 where the gate is 0, also for an infinite x."""
    with np.errstate(invalid="ignore"):
        return np.where(gate == 0, 0.0, x * gate).astype(np.float32)


def _scaled(x: F32, weight: npt.ArrayLike | None, bias: npt.ArrayLike | None) -> F32:
    for param, vector, apply in (("weight", weight, np.multiply), ("bias", bias, np.add)):
        if vector is not None:
            factors = _floats(param, vector, 1)
            if factors.shape != x.shape[-1:]:
                raise _wrong(param, factors, f"{list(x.shape[-1:])}")
            x = apply(x, factors)
    return x


def _floats(param: str, values: npt.ArrayLike, least_dims: int) -> F32:
    expected = f"numbers in at least {least_dims} dimensions"
    array = _array(param, values, expected)
    if array.dtype.kind not in "fiub" or array.ndim < least_dims:
        raise _wrong(param, array, expected)
    with np.errstate(over="ignore"):
        return array.astype(np.float32)


def _array(param: str, values: npt.ArrayLike, expected: str) -> npt.NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:
        raise BadInputError("rows of different lengths", param=param, expected=expected) from None


def _number(param: str, value: float) -> float:
    if not isinstance(value, Real) or not isfinite(value):
        raise BadInputError("wrong type", param=param, got=repr(value), expected="a finite number")
    return float(value)


def _wrong(param: str, array: npt.NDArray[np.generic], expected: str) -> BadInputError:
    return BadInputError("wrong array", param=param, got=f"{array.dtype} {list(array.shape)}", expected=expected)
