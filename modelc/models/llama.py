"""LLaMA and its family: pre-norm decoder with RMSNorm, RoPE, grouped-query attention and SwiGLU.

Llama, SmolLM and Mistral are the plain form; Qwen2 adds biases to q, k, v; Qwen3 normalises the heads of q and k.

Source: LLaMA (arXiv 2302.13971), GQA (arXiv 2305.13245), Qwen2 (arXiv 2407.10671), Qwen3 (arXiv 2505.09388); GGUF's
    keys and tensor names, and those of Hugging Face's configurations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modelc.errors import BadFileError, UnsupportedError
from modelc.ir import Model
from modelc.models.frequencies import RopeScaling, rope_frequencies
from modelc.models.hyperparameters import Hyperparameters
from modelc.models.rope_keys import scaling_from_gguf, scaling_from_hf, theta_from_hf
from modelc.models.weights import Names, Shapes, Weights, rows_of
from modelc.program import Buffer, Builder, Program
from modelc.program.program import View

# Keys of other families that would change the result; the value that changes nothing.
NEUTRAL_KEYS = {
    "attention.scale": 0.0,
    "logit_scale": 1.0,
    "residual_scale": 1.0,
    "embedding_scale": 1.0,
    "expert_count": 0.0,
    "rope.scale_linear": 1.0,
}


@dataclass(frozen=True, slots=True)
class Config:
    """Hyperparameters."""

    n_layers: int
    dim: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    ffn_dim: int
    n_ctx: int  # positions the model was trained for
    vocab_size: int
    norm_eps: float
    rope_theta: float
    rope_scaling: RopeScaling
    rope_style: str  # which columns rotate together: `pairs` (GGUF's llama, q and k stored so) or `halves`
    qk_norm: bool
    hugging_face: bool  # whether the source has Hugging Face's tensor names

    @classmethod
    def from_gguf(cls, model: Model) -> Config:
        """From the keys `llama.*`, `qwen2.*` and so on."""
        family = model.architecture
        keys = Hyperparameters(model.metadata, f"{family}.")
        dim, n_heads = keys.integer("embedding_length"), keys.integer("attention.head_count", high=1 << 16)
        head_dim = keys.integer("attention.key_length", dim // n_heads, high=1 << 16)
        config = cls(
            n_layers=keys.integer("block_count", high=1 << 16),
            dim=dim,
            n_heads=n_heads,
            n_kv_heads=keys.integer("attention.head_count_kv", n_heads, high=1 << 16),
            head_dim=head_dim,
            ffn_dim=keys.integer("feed_forward_length"),
            n_ctx=keys.integer("context_length"),
            vocab_size=rows_of(model, "token_embd.weight", "shape (vocabulary, dim)"),
            norm_eps=keys.number("attention.layer_norm_rms_epsilon"),
            rope_theta=keys.number("rope.freq_base", 10000.0, low=1.0),
            rope_scaling=scaling_from_gguf(keys),
            rope_style="pairs" if family == "llama" else "halves",
            qk_norm="blk.0.attn_q_norm.weight" in model.tensors,
            hugging_face=False,
        )
        for key, neutral in NEUTRAL_KEYS.items():
            if keys.has(key) and keys.number(key, low=-1e12) != neutral:
                raise UnsupportedError(
                    f"metadata key {family}.{key}", got=f"{keys.number(key, low=-1e12):g}", expected=f"{neutral:g}"
                )
        if keys.integer("attention.value_length", head_dim, high=1 << 16) != head_dim:
            raise UnsupportedError("values of another size than keys", expected=f"{head_dim} columns")
        rotated = keys.integer("rope.dimension_count", head_dim, high=1 << 16)
        window = keys.integer("attention.sliding_window", config.n_ctx)
        return config.checked(rotated, window)

    @classmethod
    def from_hf(cls, model: Model) -> Config:
        """From `config.json`."""
        keys = Hyperparameters(model.metadata).section("config")
        dim, n_heads = keys.integer("hidden_size"), keys.integer("num_attention_heads", high=1 << 16)
        config = cls(
            n_layers=keys.integer("num_hidden_layers", high=1 << 16),
            dim=dim,
            n_heads=n_heads,
            n_kv_heads=keys.integer("num_key_value_heads", n_heads, high=1 << 16),
            head_dim=keys.integer("head_dim", dim // n_heads, high=1 << 16),
            ffn_dim=keys.integer("intermediate_size"),
            n_ctx=keys.integer("max_position_embeddings"),
            vocab_size=rows_of(model, "model.embed_tokens.weight", "shape (vocabulary, dim)"),
            norm_eps=keys.number("rms_norm_eps"),
            rope_theta=theta_from_hf(keys),
            rope_scaling=scaling_from_hf(keys),
            rope_style="halves",
            qk_norm="model.layers.0.self_attn.q_norm.weight" in model.tensors,
            hugging_face=True,
        )
        windowed = keys.flag("use_sliding_window", model.architecture == "mistral")
        window = keys.integer("sliding_window", config.n_ctx) if windowed else config.n_ctx
        if keys.text("hidden_act", "silu") != "silu":
            raise UnsupportedError("activation", got=keys.text("hidden_act"), expected="silu")
        return config.checked(config.head_dim, window)

    def checked(self, rotated: int, window: int) -> Config:
        """Raise for what is not supported or cannot be."""
        if self.n_heads % self.n_kv_heads:
            raise BadFileError(
                "number of kv heads", expected=f"a divisor of {self.n_heads} heads", got=str(self.n_kv_heads)
            )
        if self.head_dim % 16 or rotated != self.head_dim:
            raise UnsupportedError(
                "attention heads",
                expected="a size divisible by 16, rotated as a whole",
                got=f"{self.head_dim} columns, {rotated} rotated",
            )
        if window < self.n_ctx:
            raise UnsupportedError(
                "sliding-window attention", got=f"{window} positions", expected=f"the whole context, {self.n_ctx}"
            )
        return self


def tensors(c: Config) -> Shapes:
    """Every tensor, with its shape."""
    q_rows, kv_rows = c.n_heads * c.head_dim, c.n_kv_heads * c.head_dim
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (c.vocab_size, c.dim),
        "output_norm.weight": (c.dim,),
    }
    for i in range(c.n_layers):
        p = f"blk.{i}."
        shapes |= {
            p + "attn_norm.weight": (c.dim,),
            p + "attn_q.weight": (q_rows, c.dim),
            p + "attn_k.weight": (kv_rows, c.dim),
            p + "attn_v.weight": (kv_rows, c.dim),
            p + "attn_output.weight": (c.dim, q_rows),
            p + "ffn_norm.weight": (c.dim,),
            p + "ffn_gate.weight": (c.ffn_dim, c.dim),
            p + "ffn_up.weight": (c.ffn_dim, c.dim),
            p + "ffn_down.weight": (c.dim, c.ffn_dim),
        }
        if c.qk_norm:
            shapes |= {p + "attn_q_norm.weight": (c.head_dim,), p + "attn_k_norm.weight": (c.head_dim,)}
    return shapes


def optional_tensors(c: Config) -> Shapes:
    """What may be absent: the head (then it is the embedding), biases, divisors of the RoPE frequencies."""
    shapes: dict[str, tuple[int, ...]] = {
        "output.weight": (c.vocab_size, c.dim),
        "rope_freqs.weight": (c.head_dim // 2,),
    }
    for i in range(c.n_layers):
        p = f"blk.{i}."
        shapes |= {
            p + "attn_q.bias": (c.n_heads * c.head_dim,),
            p + "attn_k.bias": (c.n_kv_heads * c.head_dim,),
            p + "attn_v.bias": (c.n_kv_heads * c.head_dim,),
            p + "attn_output.bias": (c.dim,),
            p + "ffn_gate.bias": (c.ffn_dim,),
            p + "ffn_up.bias": (c.ffn_dim,),
            p + "ffn_down.bias": (c.dim,),
        }
    return shapes


# GGUF's names and Hugging Face's.
HF_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def names(c: Config) -> Names:
    """What the source calls a tensor."""
    if not c.hugging_face:
        return lambda name: name

    def hugging_face(name: str) -> str:
        stem, _, kind = name.rpartition(".")
        if stem.startswith("blk."):
            _, layer, part = stem.split(".", 2)
            return f"model.layers.{layer}.{HF_NAMES[part]}.{kind}"
        return f"{HF_NAMES.get(stem, stem)}.{kind}"

    return hugging_face


def lower(c: Config, w: Weights, b: Builder) -> Program:
    """The forward pass."""
    q_cols, kv_cols = c.n_heads * c.head_dim, c.n_kv_heads * c.head_dim

    def constant(name: str) -> int:
        return b.constant(w.vector(name))

    def biased(y: Buffer, *parts: str) -> Buffer:
        """y plus the biases of its parts, where there are any."""
        if any(part + ".bias" in w for part in parts):
            vectors = [w.vector_or_zero(part + ".bias", w.matrix(part + ".weight").groups * 16) for part in parts]
            b.bias(y, b.constant(np.concatenate(vectors)))
        return y

    divisors = w.vector("rope_freqs.weight") if "rope_freqs.weight" in w else None
    if divisors is not None and not (np.isfinite(divisors).all() and divisors.min() > 0):
        raise BadFileError("divisors of RoPE frequencies", tensor="rope_freqs.weight", expected="positive numbers")
    frequencies = rope_frequencies(c.head_dim, c.rope_theta, c.rope_scaling, divisors)

    x = b.embed(w.matrix("token_embd.weight"))
    angles = b.rope_angles(frequencies, c.rope_style, c.head_dim, c.rope_scaling.magnitude)
    residual = None  # added to x by the next norm
    for b.layer in range(c.n_layers):
        p = f"blk.{b.layer}."

        h = b.rms_norm(x, constant(p + "attn_norm.weight"), c.norm_eps, residual)
        parts = [f"{p}attn_{part}" for part in "qkv"]
        qkv = biased(b.matmul(h, *(w.matrix(part + ".weight") for part in parts)), *parts)
        q, k, v = View(qkv, 0, q_cols), View(qkv, q_cols, kv_cols), View(qkv, q_cols + kv_cols, kv_cols)
        if c.qk_norm:
            b.head_norm(q, constant(p + "attn_q_norm.weight"), c.head_dim, c.norm_eps)
            b.head_norm(k, constant(p + "attn_k_norm.weight"), c.head_dim, c.norm_eps)
        b.rope(q, angles, c.head_dim)
        b.rope(k, angles, c.head_dim)
        kv_at = b.kv_write(k, v, c.head_dim, angles)
        a = b.attention(q, c.n_kv_heads, c.head_dim, kv_at, c.head_dim**-0.5)
        residual = biased(b.matmul(a, w.matrix(p + "attn_output.weight")), p + "attn_output")

        h = b.rms_norm(x, constant(p + "ffn_norm.weight"), c.norm_eps, residual)
        gate_up = b.matmul(h, w.matrix(p + "ffn_gate.weight"), w.matrix(p + "ffn_up.weight"))
        gate_up = biased(gate_up, p + "ffn_gate", p + "ffn_up")
        residual = biased(b.matmul(b.gated(gate_up, c.ffn_dim), w.matrix(p + "ffn_down.weight")), p + "ffn_down")
    b.layer = -1

    h = b.rms_norm(x, constant("output_norm.weight"), c.norm_eps, residual, out_rows=True)
    head = "output.weight" if "output.weight" in w else "token_embd.weight"
    return b.finish(b.matmul(h, w.matrix(head), out_rows=True), c.vocab_size)
