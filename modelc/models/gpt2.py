"""GPT-2: pre-norm decoder with LayerNorm, learned positions, biases everywhere and GELU.

Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"; GGUF's keys and names, Hugging
    Face's.
"""

from __future__ import annotations

from dataclasses import dataclass

from modelc.errors import UnsupportedError
from modelc.ir import Model
from modelc.models.hyperparameters import Hyperparameters
from modelc.models.weights import Names, Shapes, Weights, rows_of
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
    hugging_face: bool  # its tensor names, and matrices stored (inputs, outputs)
    prefix: str  # of its tensor names

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
            n_ctx=rows_of(model, "position_embd.weight", "a matrix"),
            vocab_size=rows_of(model, "token_embd.weight", "a matrix"),
            norm_eps=keys.number("attention.layer_norm_epsilon"),
            activation="gelu_tanh",
            hugging_face=False,
            prefix="",
        ).checked()

    @classmethod
    def from_hf(cls, model: Model) -> Config:
        """From `config.json`."""
        keys = Hyperparameters(model.metadata).section("config")
        prefix = "transformer." if "transformer.wte.weight" in model.tensors else ""
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
            n_ctx=rows_of(model, prefix + "wpe.weight", "a matrix"),
            vocab_size=rows_of(model, prefix + "wte.weight", "a matrix"),
            norm_eps=keys.number("layer_norm_epsilon", 1e-5),
            activation=ACTIVATIONS[activation],
            hugging_face=True,
            prefix=prefix,
        ).checked()

    def checked(self) -> Config:
        """Raise for what is not supported or cannot be."""
        if self.dim % self.n_heads or self.head_dim % 16:
            raise UnsupportedError(
                "attention heads", expected="a size divisible by 16", got=f"{self.dim} columns in {self.n_heads} heads"
            )
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


HF_NAMES = {
    "token_embd": "wte",
    "position_embd": "wpe",
    "output_norm": "ln_f",
    "attn_norm": "ln_1",
    "attn_qkv": "attn.c_attn",
    "attn_output": "attn.c_proj",
    "ffn_norm": "ln_2",
    "ffn_up": "mlp.c_fc",
    "ffn_down": "mlp.c_proj",
}
TRANSPOSED = ("attn_qkv", "attn_output", "ffn_up", "ffn_down")  # in Hugging Face's checkpoints


def names(c: Config) -> Names:
    """What the source calls a tensor."""
    if not c.hugging_face:
        return lambda name: name

    def hugging_face(name: str) -> str:
        stem, _, kind = name.rpartition(".")
        if stem == "output":
            return f"lm_head.{kind}"
        if stem.startswith("blk."):
            _, layer, part = stem.split(".", 2)
            return f"{c.prefix}h.{layer}.{HF_NAMES[part]}.{kind}"
        return f"{c.prefix}{HF_NAMES[stem]}.{kind}"

    return hugging_face


def transposed(c: Config, name: str) -> bool:
    """Whether the source keeps a matrix as (inputs, outputs)."""
    return c.hugging_face and name.endswith(".weight") and name.split(".")[-2] in TRANSPOSED


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
    return b.finish(b.matmul(h, w.matrix(head), out_rows=True), c.vocab_size)
