"""Attention, rotary embeddings, and the layers with a state that take attention's place."""

from __future__ import annotations

import numpy as np

from modelc.onnx import functions
from modelc.onnx.call import Call
from modelc.onnx.lowering import is_f32, softmax_f32
from modelc.onnx.operator import Table
from modelc.onnx.operators.maps import sigmoid
from modelc.onnx.operators.matrices import product
from modelc.onnx.operators.norms import softmax_of
from modelc.onnx.values import Array


def heads_apart(call: Call, x: Array, n_heads: int) -> Array:
    """(batch, tokens, heads * dim) -> (batch, heads, tokens, dim)."""
    if n_heads < 1 or x.shape[-1] % n_heads:
        raise call.fail("the columns are not whole heads", got=x.shape[-1], expected=f"a multiple of {n_heads}")
    return x.reshape(*x.shape[:2], n_heads, -1).transpose(0, 2, 1, 3)


def heads_together(x: Array) -> Array:
    """(batch, heads, tokens, dim) -> (batch, tokens, heads * dim)."""
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def attention(
    call: Call,
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
    lengths: Array | None = None,
) -> tuple[Array | None, ...]:
    """softmax(q k^T scale + mask) v for each head; a row that sees nothing gives 0."""
    joined = q.ndim == 3
    if joined:
        n_heads, n_kv = call.attribute("q_num_heads", int), call.attribute("kv_num_heads", int)
        q, k, v = heads_apart(call, q, n_heads), heads_apart(call, k, n_kv), heads_apart(call, v, n_kv)
    if (past_key is None) != (past_value is None) or (past_key is not None and lengths is not None):
        raise call.fail("past keys, past values and lengths do not go together")
    before = 0
    if past_key is not None and past_value is not None:
        before = past_key.shape[2]
        k, v = np.concatenate([past_key, k], axis=2), np.concatenate([past_value, v], axis=2)
    present = k, v
    if q.shape[1] % k.shape[1]:
        raise call.fail("the heads do not share keys evenly", got=f"{q.shape[1]} and {k.shape[1]}")
    shared = q.shape[1] // k.shape[1]
    if shared > 1:
        k, v = np.repeat(k, shared, axis=1), np.repeat(v, shared, axis=1)
    scale = call.optional("scale", float)
    root = q.dtype.type(np.sqrt(q.shape[-1] ** -0.5 if scale is None else scale))
    call.room((*q.shape[:3], k.shape[2]), q.dtype)
    scores = product(call, (q * root).astype(q.dtype), np.swapaxes((k * root).astype(k.dtype), 2, 3))
    mode = call.attribute("qk_matmul_output_mode", int, 0)
    kept = {0: scores}
    kept[1] = scores = _capped(scores, call.attribute("softcap", float, 0.0))
    kept[2] = scores = (scores + _bias(call, q, k, mask, before, lengths)).astype(scores.dtype)
    kept[3] = weights = shares(call, scores)
    if mode not in kept:
        raise call.fail("a wrong qk_matmul_output_mode", got=mode, expected="0 to 3")
    y = product(call, weights, v)
    return (heads_together(y) if joined else y, *present, kept[mode])


def shares(call: Call, scores: Array) -> Array:
    """Softmax of the last dimension; 0 for a row of only -inf."""
    if is_f32(scores):
        return softmax_f32(call, "masked", scores, -1)
    weights = softmax_of(scores.astype(np.float64), -1)
    return np.where(np.isneginf(scores).all(axis=-1, keepdims=True), 0.0, weights).astype(scores.dtype)


def _capped(scores: Array, cap: float) -> Array:
    if cap <= 0:
        return scores
    return (cap * functions.tanh(scores.astype(np.float64) / cap)).astype(scores.dtype)


def _bias(call: Call, q: Array, k: Array, mask: Array | None, before: int, lengths: Array | None) -> Array:
    """What is added to the scores: 0 or -inf, or the mask's numbers."""
    n_queries, n_keys = q.shape[2], k.shape[2]
    minus = q.dtype.type(-np.inf)
    zero = q.dtype.type(0)
    bias: Array = np.zeros((n_queries, n_keys), q.dtype)
    if mask is not None:
        mask = np.where(mask, zero, minus) if mask.dtype == np.bool_ else mask
        missing = n_keys - mask.shape[-1]
        if missing > 0:
            mask = np.pad(mask, [(0, 0)] * (mask.ndim - 1) + [(0, missing)], constant_values=-np.inf)
        bias = bias + mask
    offset = np.array([before]) if lengths is None else lengths.reshape(-1) - n_queries
    distance = np.arange(n_queries)[:, None] + offset.reshape(-1, 1, 1, 1) - np.arange(n_keys)  # (batch, 1, q, keys)
    seen = np.ones((1, 1, 1, 1), np.bool_)
    left, right = call.attribute("left_window_size", int, -1), call.attribute("right_window_size", int, -1)
    if call.attribute("is_causal", int, 0):
        seen = seen & (distance >= 0)
    if left >= 0:
        seen = seen & (distance <= left)
    if right >= 0:
        seen = seen & (-distance <= right)
    if lengths is not None:
        seen = seen & (np.arange(n_keys) < lengths.reshape(-1, 1, 1, 1))
    return bias if seen.all() else bias + np.where(seen, zero, minus)


def rotary_embedding(call: Call, x: Array, cosines: Array, sines: Array, positions: Array | None = None) -> Array:
    """Pairs of columns turned by the angle of their position."""
    interleaved = bool(call.attribute("interleaved", int, 0))
    joined = x.ndim == 3
    heads = heads_apart(call, x, call.attribute("num_heads", int)) if joined else x
    turned = call.attribute("rotary_embedding_dim", int, 0) or heads.shape[-1]
    if positions is not None:
        cosines, sines = cosines[positions], sines[positions]
    cosine, sine = cosines[:, None], sines[:, None]  # (batch, 1, tokens, dim / 2)
    if cosine.shape[-1] * 2 != turned:
        raise call.fail("the caches do not fit", got=cosine.shape[-1], expected=turned // 2)
    part = heads[..., :turned]
    a, b = (part[..., ::2], part[..., 1::2]) if interleaved else np.split(part, 2, axis=-1)
    real, imaginary = cosine * a - sine * b, sine * a + cosine * b
    if interleaved:
        rotated = np.stack([real, imaginary], axis=-1).reshape(part.shape)
    else:
        rotated = np.concatenate([real, imaginary], axis=-1)
    y = np.concatenate([rotated, heads[..., turned:]], axis=-1).astype(x.dtype)
    return heads_together(y) if joined else y


def linear_attention(
    call: Call,
    query: Array,
    key: Array,
    value: Array,
    state: Array | None = None,
    decay: Array | None = None,
    beta: Array | None = None,
) -> tuple[Array, Array]:
    """A state of sums of key and value products, decayed and corrected as the rule says, read by queries."""
    rule = call.choice("update_rule", "gated_delta", ("linear", "gated", "delta", "gated_delta"))
    n_heads, n_kv = call.attribute("q_num_heads", int), call.attribute("kv_num_heads", int)
    gated, corrected = rule.startswith("gated"), rule.endswith("delta")
    if n_kv < 1 or n_heads % n_kv or gated != (decay is not None) or corrected != (beta is not None):
        raise call.fail(f"the inputs do not fit the rule '{rule}'")
    q, k, v = (heads_apart(call, x, n).astype(np.float32) for x, n in ((query, n_heads), (key, n_kv), (value, n_kv)))
    batch, _, time, dim = q.shape
    shape = (batch, n_kv, k.shape[3], v.shape[3])
    if state is not None and state.shape != shape:
        raise call.fail("the state does not fit", got=list(state.shape), expected=list(shape))
    memory = np.zeros(shape, np.float32) if state is None else state.astype(np.float32)
    factors = None if decay is None else functions.exp(heads_apart(call, decay, n_kv).astype(np.float64))
    shares = None if beta is None else beta.astype(np.float32).transpose(0, 2, 1)[..., None]
    scale = call.attribute("scale", float, 0.0) or dim**-0.5
    y = np.zeros((batch, n_heads, time, v.shape[3]), np.float32)
    for t in range(time):
        column, row = k[:, :, t, :, None], v[:, :, t, None, :]
        if factors is not None:
            memory = memory * factors[:, :, t, :, None].astype(np.float32)
        if shares is not None:
            row = shares[:, :, t, None] * (row - product(call, np.swapaxes(column, 2, 3), memory))
        memory = memory + column * row
        read = np.repeat(memory, n_heads // n_kv, axis=1)
        y[:, :, t] = np.float32(scale) * product(call, q[:, :, t, None], read)[:, :, 0]
    return heads_together(y).astype(query.dtype), memory.astype(query.dtype if state is None else state.dtype)


def causal_conv(
    call: Call, x: Array, weight: Array, bias: Array | None = None, state: Array | None = None
) -> tuple[Array, Array]:
    """A convolution of each channel with what came before, and what the next call needs of it."""
    activation = call.choice("activation", "none", ("none", "silu", "swish"))
    if x.ndim != 3 or weight.ndim != 3 or weight.shape[:2] != (x.shape[1], 1):
        raise call.fail("the weight does not fit", got=list(weight.shape), expected=f"one for {list(x.shape)}")
    size = weight.shape[2]
    before = np.zeros((*x.shape[:2], size - 1), x.dtype) if state is None else state
    padded = np.concatenate([before, x], axis=2)
    wide = np.zeros(x.shape, np.float32)
    for i in range(size):
        wide = wide + padded[:, :, i : i + x.shape[2]].astype(np.float32) * weight[:, :, i].astype(np.float32)
    if bias is not None:
        wide = wide + bias.astype(np.float32)[:, None]
    y = wide.astype(x.dtype)
    if activation != "none":
        y = (y.astype(np.float64) * sigmoid(y.astype(np.float64))).astype(x.dtype)
    return y, padded[:, :, padded.shape[2] - (size - 1) :]


def swiglu(call: Call, a: Array, b: Array | None = None) -> Array:
    """A gate a sigmoid(alpha a) times b; without b, both are halves of the last dimension."""
    gate, up = (a, b) if b is not None else np.split(a, 2, axis=-1)
    alpha = call.attribute("alpha", float, 1.0)
    wide = gate.astype(np.float64)
    return np.asarray((wide * sigmoid(alpha * wide)).astype(a.dtype) * up)


ATTENTION: Table = {
    "Attention": attention,
    "CausalConvWithState": causal_conv,
    "LinearAttention": linear_attention,
    "RotaryEmbedding": rotary_embedding,
    "SwiGLU": swiglu,
}
