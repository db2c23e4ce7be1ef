"""BERT: post-norm encoder with learned positions, biases everywhere, GELU, and attention over the whole text.

Source: Devlin et al. 2018, "BERT: Pre-training of Deep Bidirectional Transformers"; Reimers and Gurevych 2019,
    "Sentence-BERT", for pooling; GGUF's keys and names, and Hugging Face's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from modelc.errors import UnsupportedError
from modelc.ir import JSON, Model
from modelc.models.heads import check_split
from modelc.models.hugging_face import HuggingFace
from modelc.models.hyperparameters import Hyperparameters
from modelc.models.pooling import Pooling, pooling_from_gguf, pooling_from_hf, pooling_to_gguf
from modelc.models.weights import Shapes, Weights, rows_of
from modelc.program import Buffer, Builder, Program
from modelc.program.program import View

ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu"}


@dataclass(frozen=True, slots=True)
class Config:
    """Hyperparameters."""

    n_layers: int
    dim: int
    n_heads: int
    ffn_dim: int
    n_ctx: int  # rows of the position embedding
    n_types: int  # rows of the token types; texts are of the first
    vocab_size: int
    norm_eps: float
    activation: str
    pooling: Pooling

    @property
    def head_dim(self) -> int:
        """Columns of a head."""
        return self.dim // self.n_heads

    @classmethod
    def from_gguf(cls, model: Model) -> Config:
        """From the keys `bert.*`."""
        keys = Hyperparameters(model.metadata, "bert.")
        if keys.flag("attention.causal", False):
            raise UnsupportedError("metadata key bert.attention.causal", got="true", expected="false")
        return cls(
            n_layers=keys.integer("block_count", high=1 << 16),
            dim=keys.integer("embedding_length"),
            n_heads=keys.integer("attention.head_count", high=1 << 16),
            ffn_dim=keys.integer("feed_forward_length"),
            n_ctx=rows_of(model, "position_embd.weight"),
            n_types=rows_of(model, "token_types.weight"),
            vocab_size=rows_of(model, "token_embd.weight"),
            norm_eps=keys.number("attention.layer_norm_epsilon"),
            activation="gelu",
            pooling=pooling_from_gguf(keys),
        ).checked()

    @classmethod
    def from_hf(cls, model: Model) -> Config:
        """From `config.json`, and what stands beside it for sentence encoders."""
        keys = Hyperparameters(model.metadata).section("config")
        activation, positions = keys.text("hidden_act", "gelu"), keys.text("position_embedding_type", "absolute")
        if activation not in ACTIVATIONS:
            raise UnsupportedError("activation", got=activation, expected=", ".join(sorted(ACTIVATIONS)))
        if positions != "absolute":
            raise UnsupportedError("position_embedding_type of config.json", got=positions, expected="absolute")
        return cls(
            n_layers=keys.integer("num_hidden_layers", high=1 << 16),
            dim=keys.integer("hidden_size"),
            n_heads=keys.integer("num_attention_heads", high=1 << 16),
            ffn_dim=keys.integer("intermediate_size"),
            n_ctx=rows_of(model, "position_embd.weight", HUGGING_FACE),
            n_types=rows_of(model, "token_types.weight", HUGGING_FACE),
            vocab_size=rows_of(model, "token_embd.weight", HUGGING_FACE),
            norm_eps=keys.number("layer_norm_eps", 1e-12),
            activation=ACTIVATIONS[activation],
            pooling=pooling_from_hf(model),
        ).checked()

    def gguf_keys(self) -> dict[str, JSON]:
        """The keys that `from_gguf` reads, without its prefix.

        Raises:
            UnsupportedError: GGUF has no key for something.
        """
        if self.activation != "gelu":
            raise UnsupportedError("GGUF has no key for this activation", got=self.activation, expected="gelu")
        return {
            "block_count": self.n_layers,
            "embedding_length": self.dim,
            "attention.head_count": self.n_heads,
            "attention.causal": False,
            "attention.layer_norm_epsilon": self.norm_eps,
            "feed_forward_length": self.ffn_dim,
            "context_length": self.n_ctx,
            "vocab_size": self.vocab_size,
            "pooling_type": pooling_to_gguf(self.pooling),
        }

    def checked(self) -> Config:
        """Raise for what is not supported or cannot be."""
        check_split(self.dim, self.n_heads)
        return self


def tensors(c: Config) -> Shapes:
    """Every tensor, with its shape."""
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (c.vocab_size, c.dim),
        "position_embd.weight": (c.n_ctx, c.dim),
        "token_types.weight": (c.n_types, c.dim),
        "token_embd_norm.weight": (c.dim,),
        "token_embd_norm.bias": (c.dim,),
    }
    for i in range(c.n_layers):
        p = f"blk.{i}."
        for part, rows, cols in (
            ("attn_q", c.dim, c.dim),
            ("attn_k", c.dim, c.dim),
            ("attn_v", c.dim, c.dim),
            ("attn_output", c.dim, c.dim),
            ("ffn_up", c.ffn_dim, c.dim),
            ("ffn_down", c.dim, c.ffn_dim),
        ):
            shapes |= {p + part + ".weight": (rows, cols), p + part + ".bias": (rows,)}
        for part in ("attn_output_norm", "layer_output_norm"):
            shapes |= {p + part + ".weight": (c.dim,), p + part + ".bias": (c.dim,)}
    return shapes


def optional_tensors(c: Config) -> Shapes:
    """None."""
    return {}


HUGGING_FACE = HuggingFace(
    "bert.",
    {
        "token_embd": "bert.embeddings.word_embeddings",
        "position_embd": "bert.embeddings.position_embeddings",
        "token_types": "bert.embeddings.token_type_embeddings",
        "token_embd_norm": "bert.embeddings.LayerNorm",
        "attn_q": "bert.encoder.layer.{}.attention.self.query",
        "attn_k": "bert.encoder.layer.{}.attention.self.key",
        "attn_v": "bert.encoder.layer.{}.attention.self.value",
        "attn_output": "bert.encoder.layer.{}.attention.output.dense",
        "attn_output_norm": "bert.encoder.layer.{}.attention.output.LayerNorm",
        "ffn_up": "bert.encoder.layer.{}.intermediate.dense",
        "ffn_down": "bert.encoder.layer.{}.output.dense",
        "layer_output_norm": "bert.encoder.layer.{}.output.LayerNorm",
    },
)


def lower(c: Config, w: Weights, b: Builder) -> Program:
    """The forward pass: the last hidden states of all rows."""

    def norm(x: Buffer, name: str, add: Buffer | None = None) -> Buffer:
        weight, bias = b.constant(w.vector(name + ".weight")), b.constant(w.vector(name + ".bias"))
        return b.layer_norm(x, weight, bias, c.norm_eps, add)

    def linear(x: Buffer, *names: str, activation: str = "none", keep: bool = False) -> Buffer:
        y = b.matmul(x, *(w.matrix(name + ".weight") for name in names), keep=keep)
        vectors = [w.vector_or_zero(n + ".bias", w.matrix(n + ".weight").groups * 16) for n in names]
        b.bias(y, b.constant(np.concatenate(vectors)), activation)
        return y

    x = b.embed(w.matrix("token_embd.weight"))
    b.add_position(x, w.matrix("position_embd.weight"))
    b.add_first(x, w.matrix("token_types.weight"))
    x = norm(x, "token_embd_norm")
    for b.layer in range(c.n_layers):
        p = f"blk.{b.layer}."

        qkv = linear(x, p + "attn_q", p + "attn_k", p + "attn_v", keep=True)
        q, k, v = (View(qkv, i * c.dim, c.dim) for i in range(3))
        a = b.full_attention(q, k, v, c.head_dim, c.head_dim**-0.5)
        x = norm(x, p + "attn_output_norm", linear(a, p + "attn_output"))

        up = linear(x, p + "ffn_up", activation=c.activation, keep=True)
        x = norm(x, p + "layer_output_norm", linear(up, p + "ffn_down"))
    b.layer = -1

    return b.finish(x, c.dim)
