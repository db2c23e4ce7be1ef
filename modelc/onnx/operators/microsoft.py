"""Operators of the domain `com.microsoft`, as ONNX Runtime's tools and exporters write them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from modelc.onnx.call import Call
from modelc.onnx.lowering import is_f32, map_f32, norm_f32, pair_f32
from modelc.onnx.operator import Lowered, Table
from modelc.onnx.operators.attention import heads_apart, heads_together, shares
from modelc.onnx.operators.convolutions import conv
from modelc.onnx.operators.maps import as_float, gelu, sigmoid
from modelc.onnx.operators.matrices import product, product_f32
from modelc.onnx.operators.quantization import dequantize, dynamic_quantize, matmul_integer, quantize
from modelc.onnx.values import Array


def fused_matmul(call: Call, a: Array, b: Array) -> Any:
    """Alpha A B, each with its last two dimensions swapped where asked for."""
    if call.attribute("transBatchA", int, 0) or call.attribute("transBatchB", int, 0):
        raise call.unsupported("a transposed batch")
    left = np.swapaxes(a, -1, -2) if call.attribute("transA", int, 0) else a
    right = np.swapaxes(b, -1, -2) if call.attribute("transB", int, 0) else b
    alpha = call.attribute("alpha", float, 1.0)
    if is_f32(a, b):
        y = product_f32(call, left, right)
        return Lowered(y if alpha == 1.0 else map_f32(call, "affine", y, alpha, 0.0))
    return np.asarray(product(call, left, right) * left.dtype.type(alpha))


def bias_gelu(call: Call, x: Array, bias: Array | None = None) -> Any:
    """GELU of x + bias."""
    return _gelu_of(call, "gelu", x, bias)


def fast_gelu(call: Call, x: Array, bias: Array | None = None) -> Any:
    """GELU by tanh of x + bias."""
    return _gelu_of(call, "gelu_tanh", x, bias)


def _gelu_of(call: Call, name: str, x: Array, bias: Array | None) -> Any:
    if is_f32(x, bias):
        return Lowered(map_f32(call, name, x if bias is None else pair_f32(call, "add", x, bias)))
    wide = x.astype(np.float32) if bias is None else x.astype(np.float32) + bias.astype(np.float32)
    return map_f32(call, name, wide).astype(x.dtype)


def quick_gelu(call: Call, x: Array) -> Array:
    """X sigmoid(alpha x)."""
    alpha = call.attribute("alpha", float, 1.702)
    return as_float(x, lambda wide: wide * sigmoid(alpha * wide))


def _skip_norm(kind: str) -> Any:
    def run(call: Call, x: Array, skip: Array, *vectors: Array | None) -> Any:
        gamma = vectors[0]
        beta = vectors[1] if kind == "layer" and len(vectors) > 1 else None
        bias = vectors[-1] if len(vectors) == (3 if kind == "layer" else 2) else None
        eps = call.attribute("epsilon", float, 1e-12)
        if not is_f32(x, skip, gamma, beta, bias):
            wide = [None if each is None else each.astype(np.float32) for each in (x, skip, gamma, beta, bias)]
            return tuple(each.astype(x.dtype) for each in _normed(call, kind, eps, *wide))  # type: ignore[arg-type]
        return Lowered(*_normed(call, kind, eps, x, skip, gamma, beta, bias))

    return run


def _normed(
    call: Call,
    kind: str,
    eps: float,
    x: Array,
    skip: Array,
    gamma: Array | None,
    beta: Array | None,
    bias: Array | None,
) -> tuple[Array, ...]:
    """Norm of x + skip + bias; its means and deviations; the sum."""
    n = x.shape[-1]
    if bias is not None:
        x = pair_f32(call, "add", x, bias)
    rows = x.size // max(n, 1)
    if not x.size:
        raise call.fail("there are no rows", got=list(x.shape))
    skip = np.broadcast_to(skip, x.shape)
    summed, means, deviations = call.empty(x.shape), call.empty((rows,)), call.empty((rows,))
    y = norm_f32(call, kind, x, rows, eps, gamma, beta, (means, deviations), (skip, summed))
    shape = (*x.shape[:-1], 1)
    return y, means.reshape(shape), deviations.reshape(shape), summed


def embed_layer_norm(
    call: Call,
    ids: Array,
    segments: Array | None,
    words: Array,
    positions: Array,
    kinds: Array | None,
    gamma: Array,
    beta: Array,
    mask: Array | None = None,
    places: Array | None = None,
) -> tuple[Array, ...]:
    """Sums of embeddings, normalised; the lengths that a mask gives; the sums."""
    where = np.arange(ids.shape[1]) if places is None else places
    summed = np.take(words, ids, 0) + np.take(positions, where, 0)
    if segments is not None and kinds is not None:
        summed = summed + np.take(kinds, segments, 0)
    wide = summed.astype(np.float32)
    eps = call.attribute("epsilon", float, 1e-12)
    vectors = gamma.astype(np.float32), beta.astype(np.float32)
    y = norm_f32(call, "layer", wide, wide.shape[0] * wide.shape[1], eps, *vectors)
    lengths = np.zeros(len(ids), np.int32) if mask is None else np.asarray(np.sum(mask, axis=1, dtype=np.int32))
    return y.astype(words.dtype), lengths, summed.astype(words.dtype)


def _attended(call: Call, q: Array, k: Array, v: Array, mask: Array | None, relative: Array | None) -> Array:
    """softmax(q k^T scale + mask + relative bias) v; heads apart in, together out."""
    scale = call.attribute("scale", float, 0.0) or 1.0 / math.sqrt(q.shape[-1])
    scores = product(call, q, np.swapaxes(k, 2, 3)) * q.dtype.type(scale)
    added = [_mask_bias(call, mask, len(q), k.shape[2]), relative]
    if call.attribute("unidirectional", int, 0):
        seen = np.tri(q.shape[2], k.shape[2], dtype=np.bool_)
        added.append(np.where(seen, np.float32(0), np.float32(-np.inf)))
    for bias in added:
        if bias is not None:
            scores = (scores + bias).astype(q.dtype)
    return heads_together(product(call, shares(call, scores), v))


def _mask_bias(call: Call, mask: Array | None, batch: int, n_keys: int) -> Array | None:
    """What hidden keys get: of lengths (batch,), or of masks of 0 and 1 of two to four dimensions."""
    if mask is None:
        return None
    filler = np.float32(call.attribute("mask_filter_value", float, -10000.0))
    if mask.ndim == 1 and mask.shape == (batch,):
        seen = np.arange(n_keys) < mask.reshape(-1, 1, 1, 1)
    elif mask.ndim == 2 and mask.shape == (batch, n_keys):
        seen = mask.reshape(batch, 1, 1, n_keys) != 0
    elif mask.ndim == 3 and mask.shape[0] == batch and mask.shape[2] == n_keys:
        seen = mask[:, None] != 0
    else:
        raise call.unsupported("a mask of this shape", got=list(mask.shape))
    return np.where(seen, np.float32(0), filler)


def attention(
    call: Call,
    x: Array,
    weights: Array,
    bias: Array | None = None,
    mask: Array | None = None,
    past: Array | None = None,
    relative: Array | None = None,
) -> Array:
    """Self-attention with queries, keys and values from one product."""
    if past is not None or "qkv_hidden_sizes" in call.node.attributes or call.attribute("do_rotary", int, 0):
        raise call.unsupported("this form of Attention")
    n_heads = call.attribute("num_heads", int)
    qkv = product(call, x, weights)
    qkv = qkv if bias is None else qkv + bias
    q, k, v = (heads_apart(call, part, n_heads) for part in np.split(qkv, 3, axis=-1))
    return _attended(call, q, k, v, mask, relative)


def multi_head_attention(
    call: Call,
    q: Array,
    k: Array | None = None,
    v: Array | None = None,
    bias: Array | None = None,
    mask: Array | None = None,
    relative: Array | None = None,
    *past: Array | None,
) -> Array:
    """Attention with queries, keys and values of their own, (batch, tokens, heads * dim) each."""
    if k is None or v is None or q.ndim != 3 or k.ndim != 3 or any(each is not None for each in past):
        raise call.unsupported("this form of MultiHeadAttention")
    n_heads = call.attribute("num_heads", int)
    if bias is not None:
        n, m = q.shape[-1], k.shape[-1]
        q, k, v = q + bias[:n], k + bias[n : n + m], v + bias[n + m :]
    q, k, v = (heads_apart(call, each, n_heads) for each in (q, k, v))
    return _attended(call, q, k, v, mask, relative)


def matmul_integer_to_float(
    call: Call,
    a: Array,
    b: Array,
    scale_a: Array,
    scale_b: Array,
    zero_a: Array | None = None,
    zero_b: Array | None = None,
    bias: Array | None = None,
) -> Array:
    """An exact product of integers times both scales."""
    y = matmul_integer(call, a, b, zero_a, zero_b).astype(np.float32) * (scale_a * scale_b)
    return y if bias is None else y + bias


def dynamic_quantize_matmul(
    call: Call, a: Array, b: Array, scale_b: Array, zero_b: Array | None = None, bias: Array | None = None
) -> Array:
    """A product of a float matrix, quantized on the way, and a quantized one."""
    quantized, scale, zero = dynamic_quantize(call, a)
    return matmul_integer_to_float(call, quantized, b, scale, scale_b, zero, zero_b, bias)


def matmul_n_bits(
    call: Call, x: Array, packed: Array, scales: Array, zeros: Array | None = None, groups: Array | None = None
) -> Any:
    """X @ W^T with W (n, k) in blocks of 2, 4 or 8 bits, each with a scale and a zero point."""
    k, n = call.attribute("K", int), call.attribute("N", int)
    bits, block = call.attribute("bits", int, 4), call.attribute("block_size", int)
    if groups is not None or bits not in (2, 4, 8) or (zeros is not None and zeros.dtype != np.uint8):
        raise call.unsupported("this form of MatMulNBits", got=f"{bits} bits")
    weight = call.prepared(1, packed, "columns", lambda: _unpacked(call, packed, scales, zeros, (n, k, bits, block)))
    return product(call, x, weight.astype(x.dtype))


def _unpacked(call: Call, packed: Array, scales: Array, zeros: Array | None, sizes: tuple[int, int, int, int]) -> Array:
    """The weights as columns, float32 (k, n)."""
    n, k, bits, block = sizes
    blocks = -(-k // block) if block > 0 else 0
    if packed.size * 8 != n * blocks * block * bits or scales.size != n * blocks:
        raise call.fail("the packed weights do not fit", got=list(packed.shape), expected=f"{n} rows of {k}")
    call.room((n, blocks * block))
    codes = _codes(packed, bits).reshape(n, blocks, block).astype(np.float32)
    if zeros is None:
        codes = codes - np.float32(1 << (bits - 1))
    else:
        codes = codes - _codes(zeros.reshape(n, -1), bits).reshape(n, -1)[:, :blocks, None].astype(np.float32)
    rows = codes * scales.reshape(n, blocks, 1).astype(np.float32)
    return np.ascontiguousarray(rows.reshape(n, -1)[:, :k].T)


def _codes(packed: Array, bits: int) -> Array:
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return (packed[..., None] >> shifts) & np.uint8((1 << bits) - 1)


def fused_conv(call: Call, x: Array, weight: Array, bias: Array | None = None, other: Array | None = None) -> Any:
    """A convolution, an addend and an activation."""
    name = call.attribute("activation", str, "")
    if name not in ("", "Relu"):
        raise call.unsupported(f"the activation '{name}'")
    result = conv(call, x, weight, bias)
    if not isinstance(result, Lowered):
        raise call.unsupported("a fused convolution of another type than float32")
    (y,) = result.outputs
    y = y if other is None else pair_f32(call, "add", y, other)
    return Lowered(map_f32(call, "relu", y) if name else y)


MICROSOFT: Table = {
    "Attention": attention,
    "BiasGelu": bias_gelu,
    "DequantizeLinear": dequantize,
    "DynamicQuantizeMatMul": dynamic_quantize_matmul,
    "EmbedLayerNormalization": embed_layer_norm,
    "FastGelu": fast_gelu,
    "FusedConv": fused_conv,
    "FusedMatMul": fused_matmul,
    "Gelu": gelu,
    "MatMulIntegerToFloat": matmul_integer_to_float,
    "MatMulNBits": matmul_n_bits,
    "MultiHeadAttention": multi_head_attention,
    "QuantizeLinear": quantize,
    "QuickGelu": quick_gelu,
    "SkipLayerNormalization": _skip_norm("layer"),
    "SkipSimplifiedLayerNormalization": _skip_norm("rms"),
}
