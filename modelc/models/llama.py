"""LLaMA and its family: pre-norm decoder with RMSNorm, RoPE, grouped-query attention and SwiGLU.

Llama and SmolLM are the plain form; Mistral sees a sliding window; Qwen2 adds biases to q, k, v; Qwen3 normalises the
heads of q and k; Phi-3 keeps q, k, v in one matrix, gate and up in another, and rotates a part of each head.

Source: LLaMA (arXiv 2302.13971), GQA (arXiv 2305.13245), Mistral (arXiv 2310.06825), Qwen2 (arXiv 2407.10671), Qwen3
    (arXiv 2505.09388), Phi-3 (arXiv 2404.14219); GGUF's keys and tensor names, and those of Hugging Face's
    configurations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from modelc.errors import BadFileError, UnsupportedError
from modelc.ir import JSON, Model
from modelc.models.frequencies import RopeScaling, rope_frequencies
from modelc.models.heads import check_groups
from modelc.models.hugging_face import HuggingFace
from modelc.models.hyperparameters import Hyperparameters
from modelc.models.rope_keys import (
    LEAST_THETA,
    rotated_from_hf,
    scaling_from_gguf,
    scaling_from_hf,
    scaling_to_gguf,
    scaling_to_hf,
    scaling_vectors,
    theta_from_hf,
)
from modelc.models.weights import Shapes, Weights, rows_of
from modelc.models.windows import windows_from_gguf, windows_from_hf, windows_to_gguf
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
    rope_dim: int  # first columns of a head that are rotated
    ffn_dim: int
    n_ctx: int  # positions the model was trained for
    vocab_size: int
    norm_eps: float
    rope_theta: float
    rope_scaling: RopeScaling
    rope_style: str  # which columns rotate together: `pairs` (GGUF's llama, q and k stored so) or `halves`
    qk_norm: bool
    fused: bool  # q, k, v in one matrix, gate and up in another
    windows: tuple[int, ...]  # positions that each layer sees; 0: all

    @classmethod
    def from_gguf(cls, model: Model) -> Config:
        """From the keys `llama.*`, `qwen2.*` and so on."""
        family = model.architecture
        keys = Hyperparameters(model.metadata, f"{family}.")
        dim, n_heads = keys.integer("embedding_length"), keys.integer("attention.head_count", high=1 << 16)
        head_dim = keys.integer("attention.key_length", dim // n_heads, high=1 << 16)
        n_layers = keys.integer("block_count", high=1 << 16)
        config = cls(
            n_layers=n_layers,
            dim=dim,
            n_heads=n_heads,
            n_kv_heads=keys.integer("attention.head_count_kv", n_heads, high=1 << 16),
            head_dim=head_dim,
            rope_dim=keys.integer("rope.dimension_count", head_dim, high=1 << 16),
            ffn_dim=keys.integer("feed_forward_length"),
            n_ctx=keys.integer("context_length"),
            vocab_size=rows_of(model, "token_embd.weight"),
            norm_eps=keys.number("attention.layer_norm_rms_epsilon"),
            rope_theta=keys.number("rope.freq_base", 10000.0, low=LEAST_THETA),
            rope_scaling=scaling_from_gguf(keys, model),
            rope_style="pairs" if family == "llama" else "halves",
            qk_norm="blk.0.attn_q_norm.weight" in model.tensors,
            fused="blk.0.attn_qkv.weight" in model.tensors,
            windows=windows_from_gguf(keys, n_layers),
        )
        for key, neutral in NEUTRAL_KEYS.items():
            if keys.has(key) and keys.number(key, low=-1e12) != neutral:
                raise UnsupportedError(
                    f"metadata key {family}.{key}", got=f"{keys.number(key, low=-1e12):g}", expected=f"{neutral:g}"
                )
        if keys.integer("attention.value_length", head_dim, high=1 << 16) != head_dim:
            raise UnsupportedError("values of another size than keys", expected=f"{head_dim} columns")
        return config.checked()

    @classmethod
    def from_hf(cls, model: Model) -> Config:
        """From `config.json`."""
        keys = Hyperparameters(model.metadata).section("config")
        dim, n_heads = keys.integer("hidden_size"), keys.integer("num_attention_heads", high=1 << 16)
        head_dim = keys.integer("head_dim", dim // n_heads, high=1 << 16)
        n_layers = keys.integer("num_hidden_layers", high=1 << 16)
        first_windowed = keys.integer("max_window_layers", 0, low=0)
        windowed = keys.flag("use_sliding_window", model.architecture in ("mistral", "phi3"))
        if keys.text("hidden_act", "silu") != "silu":
            raise UnsupportedError("activation", got=keys.text("hidden_act"), expected="silu")

        def has(name: str) -> bool:
            return HUGGING_FACE.name_of(name, model.tensors) in model.tensors

        return cls(
            n_layers=n_layers,
            dim=dim,
            n_heads=n_heads,
            n_kv_heads=keys.integer("num_key_value_heads", n_heads, high=1 << 16),
            head_dim=head_dim,
            rope_dim=rotated_from_hf(keys, head_dim),
            ffn_dim=keys.integer("intermediate_size"),
            n_ctx=keys.integer("max_position_embeddings"),
            vocab_size=rows_of(model, "token_embd.weight", HUGGING_FACE),
            norm_eps=keys.number("rms_norm_eps"),
            rope_theta=theta_from_hf(keys),
            rope_scaling=scaling_from_hf(keys),
            rope_style="halves",
            qk_norm=has("blk.0.attn_q_norm.weight"),
            fused=has("blk.0.attn_qkv.weight"),
            windows=windows_from_hf(keys, n_layers, lambda layer: windowed and layer >= first_windowed),
        ).checked()

    def gguf_keys(self) -> dict[str, JSON]:
        """The keys that `from_gguf` reads, without the family's prefix."""
        return {
            "block_count": self.n_layers,
            "embedding_length": self.dim,
            "attention.head_count": self.n_heads,
            "attention.head_count_kv": self.n_kv_heads,
            "attention.key_length": self.head_dim,
            "attention.value_length": self.head_dim,
            "rope.dimension_count": self.rope_dim,
            "feed_forward_length": self.ffn_dim,
            "context_length": self.n_ctx,
            "vocab_size": self.vocab_size,
            "attention.layer_norm_rms_epsilon": self.norm_eps,
            "rope.freq_base": self.rope_theta,
            **scaling_to_gguf(self.rope_scaling),
            **windows_to_gguf(self.windows),
        }

    def hf_keys(self) -> dict[str, JSON]:
        """The keys that `from_hf` reads."""
        window, scaling = max(self.windows), self.rope_scaling
        longrope = {"original_max_position_embeddings": scaling.original_context} if scaling.kind == "longrope" else {}
        return {
            **longrope,
            "num_hidden_layers": self.n_layers,
            "hidden_size": self.dim,
            "num_attention_heads": self.n_heads,
            "num_key_value_heads": self.n_kv_heads,
            "head_dim": self.head_dim,
            "partial_rotary_factor": self.rope_dim / self.head_dim,
            "intermediate_size": self.ffn_dim,
            "max_position_embeddings": self.n_ctx,
            "vocab_size": self.vocab_size,
            "rms_norm_eps": self.norm_eps,
            "rope_theta": self.rope_theta,
            "rope_scaling": scaling_to_hf(scaling),
            "hidden_act": "silu",
            "sliding_window": window or None,
            "use_sliding_window": window > 0,
        }

    def gguf_vectors(self) -> dict[str, npt.NDArray[np.float32]]:
        """What GGUF keeps of the configuration as tensors."""
        return scaling_vectors(self.rope_scaling, self.rope_dim, self.rope_theta)

    def checked(self) -> Config:
        """Raise for what is not supported or cannot be."""
        check_groups(self.n_heads, self.n_kv_heads)
        if self.head_dim % 16 or self.rope_dim % 16 or not 0 < self.rope_dim <= self.head_dim:
            raise UnsupportedError(
                "attention heads",
                expected="sizes divisible by 16",
                got=f"{self.head_dim} columns, {self.rope_dim} rotated",
            )
        if self.fused and self.ffn_dim % 16:
            raise UnsupportedError("gate and up in one matrix", expected="rows divisible by 16", got=self.ffn_dim)
        for divisors in (self.rope_scaling.short_divisors, self.rope_scaling.long_divisors):
            if self.rope_scaling.kind == "longrope" and len(divisors) != self.rope_dim // 2:
                raise BadFileError("RoPE factors", expected=str(self.rope_dim // 2), got=str(len(divisors)))
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
            p + "attn_output.weight": (c.dim, q_rows),
            p + "ffn_norm.weight": (c.dim,),
            p + "ffn_down.weight": (c.dim, c.ffn_dim),
        }
        if c.fused:
            shapes |= {
                p + "attn_qkv.weight": (q_rows + 2 * kv_rows, c.dim),
                p + "ffn_up.weight": (2 * c.ffn_dim, c.dim),
            }
        else:
            shapes |= {
                p + "attn_q.weight": (q_rows, c.dim),
                p + "attn_k.weight": (kv_rows, c.dim),
                p + "attn_v.weight": (kv_rows, c.dim),
                p + "ffn_gate.weight": (c.ffn_dim, c.dim),
                p + "ffn_up.weight": (c.ffn_dim, c.dim),
            }
        if c.qk_norm:
            shapes |= {p + "attn_q_norm.weight": (c.head_dim,), p + "attn_k_norm.weight": (c.head_dim,)}
    return shapes


def optional_tensors(c: Config) -> Shapes:
    """What may be absent: the head (then it is the embedding), biases, divisors of the RoPE frequencies."""
    shapes: dict[str, tuple[int, ...]] = {
        "output.weight": (c.vocab_size, c.dim),
        "rope_freqs.weight": (c.rope_dim // 2,),
    }
    if c.fused:
        return shapes
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


HUGGING_FACE = HuggingFace(
    "model.",
    {
        "token_embd": "model.embed_tokens",
        "output_norm": "model.norm",
        "output": "lm_head",
        "attn_norm": "model.layers.{}.input_layernorm",
        "attn_q": "model.layers.{}.self_attn.q_proj",
        "attn_k": "model.layers.{}.self_attn.k_proj",
        "attn_v": "model.layers.{}.self_attn.v_proj",
        "attn_qkv": "model.layers.{}.self_attn.qkv_proj",
        "attn_q_norm": "model.layers.{}.self_attn.q_norm",
        "attn_k_norm": "model.layers.{}.self_attn.k_norm",
        "attn_output": "model.layers.{}.self_attn.o_proj",
        "ffn_norm": "model.layers.{}.post_attention_layernorm",
        "ffn_gate": "model.layers.{}.mlp.gate_proj",
        "ffn_up": "model.layers.{}.mlp.up_proj",
        "ffn_down": "model.layers.{}.mlp.down_proj",
    },
)
HUGGING_FACE_FUSED = replace(HUGGING_FACE, names={**HUGGING_FACE.names, "ffn_up": "model.layers.{}.mlp.gate_up_proj"})


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

    divisors = w.vector("rope_freqs.weight") if "rope_freqs.weight" in w else c.rope_scaling.divisors(b.n_ctx)
    if divisors is not None and not (np.isfinite(divisors).all() and divisors.min() > 0):
        raise BadFileError("divisors of RoPE frequencies", expected="positive numbers", got=f"{divisors.min():g}")
    frequencies = rope_frequencies(c.rope_dim, c.rope_theta, c.rope_scaling, divisors)

    x = b.embed(w.matrix("token_embd.weight"))
    angles = b.rope_angles(frequencies, c.rope_style, c.rope_scaling.magnitude)
    residual = None  # added to x by the next norm
    for b.layer in range(c.n_layers):
        p = f"blk.{b.layer}."

        h = b.rms_norm(x, constant(p + "attn_norm.weight"), c.norm_eps, residual)
        parts = [p + "attn_qkv"] if c.fused else [f"{p}attn_{part}" for part in "qkv"]
        qkv = biased(b.matmul(h, *(w.matrix(part + ".weight") for part in parts)), *parts)
        q, k, v = View(qkv, 0, q_cols), View(qkv, q_cols, kv_cols), View(qkv, q_cols + kv_cols, kv_cols)
        if c.qk_norm:
            b.head_norm(q, constant(p + "attn_q_norm.weight"), c.head_dim, c.norm_eps)
            b.head_norm(k, constant(p + "attn_k_norm.weight"), c.head_dim, c.norm_eps)
        b.rope(q, angles, c.head_dim)
        b.rope(k, angles, c.head_dim)
        kv_at = b.kv_write(k, v, c.head_dim, angles)
        a = b.attention(q, c.n_kv_heads, c.head_dim, kv_at, c.head_dim**-0.5, c.windows[b.layer])
        residual = biased(b.matmul(a, w.matrix(p + "attn_output.weight")), p + "attn_output")

        h = b.rms_norm(x, constant(p + "ffn_norm.weight"), c.norm_eps, residual)
        if c.fused:
            gate, up = (w.rows(p + "ffn_up.weight", start, c.ffn_dim) for start in (0, c.ffn_dim))
            gate_up = b.matmul(h, gate, up)
        else:
            gate_up = b.matmul(h, w.matrix(p + "ffn_gate.weight"), w.matrix(p + "ffn_up.weight"))
            gate_up = biased(gate_up, p + "ffn_gate", p + "ffn_up")
        residual = biased(b.matmul(b.gated(gate_up, c.ffn_dim), w.matrix(p + "ffn_down.weight")), p + "ffn_down")
    b.layer = -1

    h = b.rms_norm(x, constant("output_norm.weight"), c.norm_eps, residual, out_rows=True)
    head = "output.weight" if "output.weight" in w else "token_embd.weight"
    return b.head(h, w.matrix(head), c.vocab_size)
