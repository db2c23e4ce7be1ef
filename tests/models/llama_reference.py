"""LLaMA's forward pass in float64, straight from the paper: no batches, no cache."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from modelc import layout
from modelc.ir import Model

F64 = npt.NDArray[np.float64]


def reference_logits(model: Model, tokens: Sequence[int]) -> F64:
    """Logits after each token, float64 (tokens, vocab_size)."""
    keys = {name.removeprefix("llama."): value for name, value in model.metadata.items()}
    n_heads, n_kv_heads = keys["attention.head_count"], keys["attention.head_count_kv"]
    head_dim, eps = keys["attention.key_length"], keys["attention.layer_norm_rms_epsilon"]
    n = len(tokens)

    def weight(name: str) -> F64:
        tensor = model.tensors[name + ".weight"]
        return layout.dequantize(tensor.dtype, layout.plain_bytes(tensor), tensor.shape).astype(np.float64)

    def norm(x: F64, name: str) -> F64:
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * weight(name)

    def heads(x: F64, name: str, count: int) -> F64:
        return (x @ weight(name).T).reshape(n, count, head_dim)

    angle = np.multiply.outer(np.arange(n), keys["rope.freq_base"] ** (-np.arange(head_dim // 2) * 2 / head_dim))

    def rotate(x: F64) -> F64:
        pairs = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)[:, None]
        return np.stack([pairs.real, pairs.imag], -1).reshape(x.shape)

    x = weight("token_embd")[list(tokens)]
    for i in range(keys["block_count"]):
        p = f"blk.{i}."
        h = norm(x, p + "attn_norm")
        q, k = rotate(heads(h, p + "attn_q", n_heads)), rotate(heads(h, p + "attn_k", n_kv_heads))
        v = heads(h, p + "attn_v", n_kv_heads)
        k, v = (np.repeat(part, n_heads // n_kv_heads, 1) for part in (k, v))
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(head_dim)
        scores = np.where(np.tri(n, dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        attended = np.einsum("hqk,khd->qhd", weights / weights.sum(-1, keepdims=True), v)
        x = x + attended.reshape(n, -1) @ weight(p + "attn_output").T

        h = norm(x, p + "ffn_norm")
        gate = h @ weight(p + "ffn_gate").T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ weight(p + "ffn_up").T)) @ weight(p + "ffn_down").T
    head = "output" if "output.weight" in model.tensors else "token_embd"
    return norm(x, "output_norm") @ weight(head).T
