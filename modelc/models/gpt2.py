"""GPT-2: pre-norm decoder with LayerNorm, learned positions, biases everywhere and GELU.

Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"; GGUF's keys and names, Hugging
    Face's.
"""

from __future__ import annotations

from dataclasses import dataclass

from modelc.errors import UnsupportedError
from modelc.ir import JSON, Model
from modelc.models.heads import check_split
from modelc.models.hugging_face import HuggingFace
from modelc.models.hyperparameters import Hyperparameters
from modelc.models.weights import Shapes, Weights, rows_of
from modelc.program import Buffer, Builder, Program
from modelc.program.program import View

ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu", "relu": "relu"}


@dataclass(frozen=True, slots=True)
class Config:
    """Hyperparameters."""

    n_layers: int
    dim: int
    n_heads: int
    ffn_dim: int
    n_ctx: int  # rows of the position embedding
    vocab_size: int
    norm_eps: float
    activation: str

    @property
    def head_dim(self) -> int:
        """Columns of a head."""
        return self.dim // self.n_heads

    @classmethod
    def from_gguf(cls, model: Model) -> Config:
        """From the keys `gpt2.*`."""
        keys = Hyperparameters(model.metadata, "gpt2.")
        return cls(
            n_layers=keys.integer("block_count", high=1 << 16),
            dim=keys.integer("embedding_length"),
            n_heads=keys.integer("attention.head_count", high=1 << 16),
            ffn_dim=keys.integer("feed_forward_length"),
            n_ctx=rows_of(model, "position_embd.weight"),
            vocab_size=rows_of(model, "token_embd.weight"),
            norm_eps=keys.number("attention.layer_norm_epsilon"),
            activation="gelu_tanh",
        ).checked()

    @classmethod
    def from_hf(cls, model: Model) -> Config:
        """From `config.json`."""
        keys = Hyperparameters(model.metadata).section("config")
        dim = keys.integer("n_embd")
        activation = keys.text("activation_function", "gelu_new")
        if activation not in ACTIVATIONS:
            raise UnsupportedError("activation", got=activation, expected=", ".join(sorted(ACTIVATIONS)))
        for key, default in (("scale_attn_weights", True), ("scale_attn_by_inverse_layer_idx", False)):
            if keys.flag(key, default) != default:
                raise UnsupportedError(f"{key} of config.json", got=str(not default), expected=str(default))
        return cls(
            n_layers=keys.integer("n_layer", high=1 << 16),
            dim=dim,
            n_heads=keys.integer("n_head", high=1 << 16),
            ffn_dim=keys.integer("n_inner", 4 * dim),
            n_ctx=rows_of(model, "position_embd.weight", HUGGING_FACE),
            vocab_size=rows_of(model, "token_embd.weight", HUGGING_FACE),
            norm_eps=keys.number("layer_norm_epsilon", 1e-5),
            activation=ACTIVATIONS[activation],
        ).checked()

    def gguf_keys(self) -> dict[str, JSON]:
        """The keys that `from_gguf` reads, without its prefix.

        Raises:
            UnsupportedError: GGUF's gpt2 has no other activation than GELU by tanh.
        """
        if self.activation != "gelu_tanh":
            raise UnsupportedError("GGUF has no key for this activation", got=self.activation, expected="gelu_tanh")
        return {
            "block_count": self.n_layers,
            "embedding_length": self.dim,
            "attention.head_count": self.n_heads,
            "feed_forward_length": self.ffn_dim,
            "context_length": self.n_ctx,
            "vocab_size": self.vocab_size,
            "attention.layer_norm_epsilon": self.norm_eps,
        }

    def hf_keys(self) -> dict[str, JSON]:
        """The keys that `from_hf` reads."""
        return {
            "n_layer": self.n_layers,
            "n_embd": self.dim,
            "n_head": self.n_heads,
            "n_inner": self.ffn_dim,
            "n_positions": self.n_ctx,
            "vocab_size": self.vocab_size,
            "layer_norm_epsilon": self.norm_eps,
            "activation_function": next(name for name, kind in ACTIVATIONS.items() if kind == self.activation),
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
        "output_norm.weight": (c.dim,),
        "output_norm.bias": (c.dim,),
    }
    for i in range(c.n_layers):
        p = f"blk.{i}."
        for part in ("attn_norm", "ffn_norm"):
            shapes |= {p + part + ".weight": (c.dim,), p + part + ".bias": (c.dim,)}
        for part, rows, cols in (
            ("attn_qkv", 3 * c.dim, c.dim),
            ("attn_output", c.dim, c.dim),
            ("ffn_up", c.ffn_dim, c.dim),
            ("ffn_down", c.dim, c.ffn_dim),
        ):
            shapes |= {p + part + ".weight": (rows, cols), p + part + ".bias": (rows,)}
    return shapes


def optional_tensors(c: Config) -> Shapes:
    """The head; without it, it is the embedding."""
    return {"output.weight": (c.vocab_size, c.dim)}


HUGGING_FACE = HuggingFace(
    "transformer.",
    {
        "token_embd": "transformer.wte",
        "position_embd": "transformer.wpe",
        "output_norm": "transformer.ln_f",
        "output": "lm_head",
        "attn_norm": "transformer.h.{}.ln_1",
        "attn_qkv": "transformer.h.{}.attn.c_attn",
        "attn_output": "transformer.h.{}.attn.c_proj",
        "ffn_norm": "transformer.h.{}.ln_2",
        "ffn_up": "transformer.h.{}.mlp.c_fc",
        "ffn_down": "transformer.h.{}.mlp.c_proj",
    },
    transposed=frozenset({"attn_qkv", "attn_output", "ffn_up", "ffn_down"}),
)


def lower(c: Config, w: Weights, b: Builder) -> Program:
    """The forward pass."""

    def norm(x: Buffer, name: str, add: Buffer | None = None, *, out_rows: bool = False) -> Buffer:
        weight, bias = b.constant(w.vector(name + ".weight")), b.constant(w.vector(name + ".bias"))
        return b.layer_norm(x, weight, bias, c.norm_eps, add, out_rows=out_rows)

    def linear(x: Buffer, name: str, activation: str = "none") -> Buffer:
        y = b.matmul(x, w.matrix(name + ".weight"))
        b.bias(y, b.constant(w.vector(name + ".bias")), activation)
        return y

    x = b.embed(w.matrix("token_embd.weight"))
    b.add_position(x, w.matrix("position_embd.weight"))
    residual = None  # added to x by the next norm
    for b.layer in range(c.n_layers):
        p = f"blk.{b.layer}."

        qkv = linear(norm(x, p + "attn_norm", residual), p + "attn_qkv")
        q, k, v = (View(qkv, i * c.dim, c.dim) for i in range(3))
        kv_at = b.kv_write(k, v, c.head_dim, None)
        a = b.attention(q, c.n_heads, c.head_dim, kv_at, c.head_dim**-0.5)
        residual = linear(a, p + "attn_output")

        up = linear(norm(x, p + "ffn_norm", residual), p + "ffn_up", c.activation)
        residual = linear(up, p + "ffn_down")
    b.layer = -1

    h = norm(x, "output_norm", residual, out_rows=True)
    head = "output.weight" if "output.weight" in w else "token_embd.weight"
    return b.head(h, w.matrix(head), c.vocab_size)
