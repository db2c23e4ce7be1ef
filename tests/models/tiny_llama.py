"""A LLaMA small enough to check by hand, built in memory with random weights of any type."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from modelc.dtypes import DTYPES
from modelc.ir import Model, Tensor, verify
from tests.kernels.stored_blocks import random_weights

NORM_EPS = 1e-5


def tiny_llama(
    weights: str | Mapping[str, str] = "f32",
    *,
    n_layers: int = 2,
    dim: int = 64,
    n_heads: int = 4,
    n_kv_heads: int = 2,
    head_dim: int = 16,
    ffn_dim: int = 96,
    vocab_size: int = 50,
    n_ctx: int = 256,
    tied: bool = True,
    seed: int = 1,
    metadata: Mapping[str, Any] | None = None,
) -> Model:
    """A model of the `llama` architecture; without a tokenizer among its metadata its tokens are bytes.

    Args:
        weights: type of all matrices, or types by the last part of their names (`attn_q`, `token_embd`, …), the
            others' under an empty name.
        n_layers, dim, n_heads, n_kv_heads, head_dim, ffn_dim, vocab_size, n_ctx: sizes; columns must be whole blocks.
        tied: whether the head is the embedding; otherwise there is an `output.weight`.
        seed: of the weights.
        metadata: more keys, or other values.
    """
    rng = np.random.default_rng(seed)
    shapes = {"token_embd": (vocab_size, dim)} | ({} if tied else {"output": (vocab_size, dim)})
    vectors = {"output_norm": dim}
    for i in range(n_layers):
        p = f"blk.{i}."
        shapes |= {
            p + "attn_q": (n_heads * head_dim, dim),
            p + "attn_k": (n_kv_heads * head_dim, dim),
            p + "attn_v": (n_kv_heads * head_dim, dim),
            p + "attn_output": (dim, n_heads * head_dim),
            p + "ffn_gate": (ffn_dim, dim),
            p + "ffn_up": (ffn_dim, dim),
            p + "ffn_down": (dim, ffn_dim),
        }
        vectors |= {p + "attn_norm": dim, p + "ffn_norm": dim}
    types = {"": weights} if isinstance(weights, str) else weights
    tensors = {}
    for name, (rows, cols) in shapes.items():
        dtype = types.get(name.split(".")[-1], types.get("", "f32"))
        stored = random_weights(dtype, rows, cols, rng, spread=cols**-0.5)  # keeps activations at about 1
        tensors[name + ".weight"] = Tensor(name + ".weight", DTYPES[dtype], (rows, cols), stored)
    for name, cols in vectors.items():
        values = rng.uniform(0.5, 1.5, cols).astype(np.float32)
        tensors[name + ".weight"] = Tensor(name + ".weight", DTYPES["f32"], (cols,), values.view(np.uint8))
    keys = {
        "llama.block_count": n_layers,
        "llama.embedding_length": dim,
        "llama.attention.head_count": n_heads,
        "llama.attention.head_count_kv": n_kv_heads,
        "llama.attention.key_length": head_dim,
        "llama.feed_forward_length": ffn_dim,
        "llama.context_length": n_ctx,
        "llama.attention.layer_norm_rms_epsilon": NORM_EPS,
        "llama.rope.freq_base": 10000.0,
    }
    ordered = {name: tensors[name] for name in sorted(tensors)}
    model = Model("tiny", "llama", "gguf", keys | dict(metadata or {}), ordered)
    verify(model)
    return model


def tiny_llama_of(dtype: str, **changes: Any) -> Model:
    """A tiny LLaMA whose matrices are all of type `dtype`, as wide as its blocks ask for."""
    if DTYPES[dtype].block_cols == 256:
        return tiny_llama(dtype, **({"dim": 256, "n_heads": 16, "n_kv_heads": 8, "ffn_dim": 256} | changes))
    return tiny_llama(dtype, **changes)
