"""Gemma 3: decoder with norms before and behind attention and feed-forward, normalised heads, and GeGLU.

Five of six layers see a sliding window and rotate with a base of their own; the embedding is scaled, and is the head.

Source: Gemma 3 (arXiv 2503.19786); GGUF's keys and names, Hugging Face's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from modelc.errors import UnsupportedError
from modelc.ir import JSON, Model
from modelc.models import llama
from modelc.models.frequencies import RopeScaling, rope_frequencies
from modelc.models.heads import check_groups
from modelc.models.hyperparameters import Hyperparameters
from modelc.models.rope_keys import (
    LEAST_THETA,
    scaling_from_gguf,
    scaling_from_hf,
    scaling_to_gguf,
    scaling_to_hf,
    theta_from_hf,
)
from modelc.models.weights import Shapes, Weights, rows_of
from modelc.models.windows import slides, windows_from_gguf, windows_from_hf, windows_to_gguf
from modelc.program import Buffer, Builder, Program
from modelc.program.program import View

PATTERN = 6  # every sixth layer sees everything
LOCAL_THETA = 10000.0
LAYERS_OF_27B = 62  # the one size whose queries are scaled by dim / n_heads, which GGUF does not say


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
    query_scalar: float  # scores are divided by its root
    rope_theta: float  # of layers that see everything,
    rope_scaling: RopeScaling  # and their scaling
    local_theta: float  # of layers with a window
    windows: tuple[int, ...]  # positions that each layer sees; 0: all

    @classmethod
    def from_gguf(cls, model: Model) -> Config:
        """From the keys `gemma3.*`."""
        keys = Hyperparameters(model.metadata, "gemma3.")
        dim, n_heads = keys.integer("embedding_length"), keys.integer("attention.head_count", high=1 << 16)
        n_layers = keys.integer("block_count", high=1 << 16)
        head_dim = keys.integer("attention.key_length", 256, high=1 << 16)
        if keys.has("final_logit_softcapping"):
            raise UnsupportedError("soft-capped logits", got="gemma3.final_logit_softcapping")
        return cls(
            n_layers=n_layers,
            dim=dim,
            n_heads=n_heads,
            n_kv_heads=keys.integer("attention.head_count_kv", n_heads, high=1 << 16),
            head_dim=head_dim,
            ffn_dim=keys.integer("feed_forward_length"),
            n_ctx=keys.integer("context_length"),
            vocab_size=rows_of(model, "token_embd.weight"),
            norm_eps=keys.number("attention.layer_norm_rms_epsilon"),
            query_scalar=dim / n_heads if n_layers == LAYERS_OF_27B else head_dim,
            rope_theta=keys.number("rope.freq_base", 1e6, low=LEAST_THETA),
            rope_scaling=scaling_from_gguf(keys, model),
            local_theta=keys.number("rope.freq_base_swa", LOCAL_THETA, low=LEAST_THETA),
            windows=windows_from_gguf(keys, n_layers, PATTERN),
        ).checked()

    @classmethod
    def from_hf(cls, model: Model) -> Config:
        """From `config.json`."""
        keys = Hyperparameters(model.metadata).section("config")
        if keys.has("text_config"):
            raise UnsupportedError("a model of texts and images", got="text_config in config.json")
        for key in ("attn_logit_softcapping", "final_logit_softcapping"):
            if keys.has(key):
                raise UnsupportedError("soft-capped logits", got=f"{key} in config.json")
        if keys.flag("use_bidirectional_attention", False):
            raise UnsupportedError("attention to later positions", got="use_bidirectional_attention in config.json")
        if (activation := keys.text("hidden_activation", "gelu_pytorch_tanh")) != "gelu_pytorch_tanh":
            raise UnsupportedError("activation", got=activation, expected="gelu_pytorch_tanh")
        n_layers = keys.integer("num_hidden_layers", high=1 << 16)
        n_heads = keys.integer("num_attention_heads", high=1 << 16)
        head_dim = keys.integer("head_dim", 256, high=1 << 16)
        pattern = keys.integer("sliding_window_pattern", keys.integer("_sliding_window_pattern", PATTERN))
        rope = keys.section("rope_parameters")
        both = rope.section("full_attention"), rope.section("sliding_attention")
        if rope.has("full_attention"):
            theta, local = (each.number("rope_theta", low=LEAST_THETA) for each in both)
        else:
            theta, local = theta_from_hf(keys), keys.number("rope_local_base_freq", LOCAL_THETA, low=LEAST_THETA)
        return cls(
            n_layers=n_layers,
            dim=keys.integer("hidden_size"),
            n_heads=n_heads,
            n_kv_heads=keys.integer("num_key_value_heads", n_heads, high=1 << 16),
            head_dim=head_dim,
            ffn_dim=keys.integer("intermediate_size"),
            n_ctx=keys.integer("max_position_embeddings"),
            vocab_size=rows_of(model, "token_embd.weight", HUGGING_FACE),
            norm_eps=keys.number("rms_norm_eps", 1e-6),
            query_scalar=keys.number("query_pre_attn_scalar", head_dim, low=1e-6),
            rope_theta=theta,
            rope_scaling=scaling_from_hf(keys, both[0] if rope.has("full_attention") else None),
            local_theta=local,
            windows=windows_from_hf(keys, n_layers, lambda layer: slides(layer, pattern)),
        ).checked()

    def gguf_keys(self) -> dict[str, JSON]:
        """The keys that `from_gguf` reads, without its prefix.

        Raises:
            UnsupportedError: GGUF has no key for something.
        """
        implied = self.dim / self.n_heads if self.n_layers == LAYERS_OF_27B else self.head_dim
        if self.query_scalar != implied:
            raise UnsupportedError("GGUF has no key for query_pre_attn_scalar", got=self.query_scalar, expected=implied)
        return {
            "block_count": self.n_layers,
            "embedding_length": self.dim,
            "attention.head_count": self.n_heads,
            "attention.head_count_kv": self.n_kv_heads,
            "attention.key_length": self.head_dim,
            "attention.value_length": self.head_dim,
            "feed_forward_length": self.ffn_dim,
            "context_length": self.n_ctx,
            "vocab_size": self.vocab_size,
            "attention.layer_norm_rms_epsilon": self.norm_eps,
            "rope.freq_base": self.rope_theta,
            "rope.freq_base_swa": self.local_theta,
            **scaling_to_gguf(self.rope_scaling),
            **windows_to_gguf(self.windows, PATTERN),
        }

    def hf_keys(self) -> dict[str, JSON]:
        """The keys that `from_hf` reads."""
        return {
            "num_hidden_layers": self.n_layers,
            "hidden_size": self.dim,
            "num_attention_heads": self.n_heads,
            "num_key_value_heads": self.n_kv_heads,
            "head_dim": self.head_dim,
            "intermediate_size": self.ffn_dim,
            "max_position_embeddings": self.n_ctx,
            "vocab_size": self.vocab_size,
            "rms_norm_eps": self.norm_eps,
            "query_pre_attn_scalar": self.query_scalar,
            "rope_theta": self.rope_theta,
            "rope_scaling": scaling_to_hf(self.rope_scaling),
            "rope_local_base_freq": self.local_theta,
            "sliding_window": max(self.windows),
            "layer_types": ["sliding_attention" if window else "full_attention" for window in self.windows],
            "hidden_activation": "gelu_pytorch_tanh",
        }

    def checked(self) -> Config:
        """Raise for what is not supported or cannot be."""
        check_groups(self.n_heads, self.n_kv_heads)
        if self.rope_scaling.kind == "longrope":
            raise UnsupportedError("RoPE scaling", got="longrope")
        if self.head_dim % 16:
            raise UnsupportedError("attention heads", expected="columns divisible by 16", got=str(self.head_dim))
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
        for norm in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"):
            shapes[f"{p}{norm}.weight"] = (c.dim,)
        shapes |= {
            p + "attn_q.weight": (q_rows, c.dim),
            p + "attn_k.weight": (kv_rows, c.dim),
            p + "attn_v.weight": (kv_rows, c.dim),
            p + "attn_q_norm.weight": (c.head_dim,),
            p + "attn_k_norm.weight": (c.head_dim,),
            p + "attn_output.weight": (c.dim, q_rows),
            p + "ffn_gate.weight": (c.ffn_dim, c.dim),
            p + "ffn_up.weight": (c.ffn_dim, c.dim),
            p + "ffn_down.weight": (c.dim, c.ffn_dim),
        }
    return shapes


def optional_tensors(c: Config) -> Shapes:
    """The head; without it, it is the embedding."""
    return {"output.weight": (c.vocab_size, c.dim)}


HUGGING_FACE = replace(
    llama.HUGGING_FACE,
    names={
        **llama.HUGGING_FACE.names,
        "post_attention_norm": "model.layers.{}.post_attention_layernorm",
        "ffn_norm": "model.layers.{}.pre_feedforward_layernorm",
        "post_ffw_norm": "model.layers.{}.post_feedforward_layernorm",
    },
    less_one=frozenset(
        {
            "output_norm",
            "attn_norm",
            "attn_q_norm",
            "attn_k_norm",
            "post_attention_norm",
            "ffn_norm",
            "post_ffw_norm",
        }
    ),
)


def lower(c: Config, w: Weights, b: Builder) -> Program:
    """The forward pass."""
    q_cols, kv_cols = c.n_heads * c.head_dim, c.n_kv_heads * c.head_dim

    def norm(x: Buffer, name: str, add: Buffer | None = None, *, out_rows: bool = False) -> Buffer:
        return b.rms_norm(x, b.constant(w.vector(name + ".weight")), c.norm_eps, add, out_rows=out_rows)

    def head_norm(x: View, name: str) -> None:
        b.head_norm(x, b.constant(w.vector(name + ".weight")), c.head_dim, c.norm_eps)

    x = b.embed(w.matrix("token_embd.weight"), c.dim**0.5)
    scaling = c.rope_scaling
    everywhere = b.rope_angles(rope_frequencies(c.head_dim, c.rope_theta, scaling), "halves", scaling.magnitude)
    nearby = b.rope_angles(rope_frequencies(c.head_dim, c.local_theta), "halves")
    residual = None  # added to x by the next norm
    for b.layer, window in enumerate(c.windows):
        p = f"blk.{b.layer}."
        angles = nearby if window else everywhere

        h = norm(x, p + "attn_norm", residual)
        qkv = b.matmul(h, *(w.matrix(f"{p}attn_{part}.weight") for part in "qkv"))
        q, k, v = View(qkv, 0, q_cols), View(qkv, q_cols, kv_cols), View(qkv, q_cols + kv_cols, kv_cols)
        head_norm(q, p + "attn_q_norm")
        head_norm(k, p + "attn_k_norm")
        b.rope(q, angles, c.head_dim)
        b.rope(k, angles, c.head_dim)
        kv_at = b.kv_write(k, v, c.head_dim, angles)
        a = b.attention(q, c.n_kv_heads, c.head_dim, kv_at, c.query_scalar**-0.5, window)
        residual = norm(b.matmul(a, w.matrix(p + "attn_output.weight")), p + "post_attention_norm")

        h = norm(x, p + "ffn_norm", residual)
        gate_up = b.matmul(h, w.matrix(p + "ffn_gate.weight"), w.matrix(p + "ffn_up.weight"))
        down = b.matmul(b.gated(gate_up, c.ffn_dim, "geglu"), w.matrix(p + "ffn_down.weight"))
        residual = norm(down, p + "post_ffw_norm")
    b.layer = -1

    h = norm(x, "output_norm", residual, out_rows=True)
    head = "output.weight" if "output.weight" in w else "token_embd.weight"
    return b.finish(b.matmul(h, w.matrix(head), out_rows=True), c.vocab_size)
