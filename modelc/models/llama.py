"""LLaMA and its family: pre-norm decoder with RMSNorm, RoPE, grouped-query attention and SwiGLU.

Source: LLaMA (arXiv 2302.13971), GQA (arXiv 2305.13245); GGUF keys and tensor names of the `llama` architecture.
"""

from __future__ import annotations

from dataclasses import dataclass

from modelc.errors import BadFileError, UnsupportedError
from modelc.ir import Model
from modelc.models.frequencies import rope_frequencies
from modelc.models.hyperparameters import Hyperparameters
from modelc.models.weights import Shapes, Weights
from modelc.program import Builder, Program
from modelc.program.program import View


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

    @classmethod
    def from_gguf(cls, model: Model) -> Config:
        """From the keys `llama.*`."""
        keys = Hyperparameters(model.metadata, "llama.")
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
            vocab_size=_vocab_size(model),
            norm_eps=keys.number("attention.layer_norm_rms_epsilon"),
            rope_theta=keys.number("rope.freq_base", 10000.0, low=1.0),
        )
        if n_heads % config.n_kv_heads:
            raise BadFileError(
                "llama.attention.head_count_kv", expected=f"a divisor of {n_heads} heads", got=str(config.n_kv_heads)
            )
        if head_dim % 16 or keys.integer("rope.dimension_count", head_dim) != head_dim:
            raise UnsupportedError(
                "llama attention heads",
                expected="a size divisible by 16, rotated as a whole",
                got=f"{head_dim} columns, {keys.integer('rope.dimension_count', head_dim)} rotated",
            )
        if keys.text("rope.scaling.type", "none") != "none" or "rope_freqs.weight" in model.tensors:
            raise UnsupportedError("RoPE scaling", got=keys.text("rope.scaling.type", "rope_freqs.weight"))
        return config


def _vocab_size(model: Model) -> int:
    embedding = model.tensors.get("token_embd.weight")
    if embedding is None or len(embedding.shape) != 2:
        raise BadFileError("tensor missing", tensor="token_embd.weight", expected="shape (vocabulary, dim)")
    return embedding.shape[0]


def tensors(c: Config) -> Shapes:
    """Every tensor, with its shape; the head `output.weight` may be absent (then it is the embedding)."""
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (c.vocab_size, c.dim),
        "output_norm.weight": (c.dim,),
    }
    for i in range(c.n_layers):
        shapes |= {
            f"blk.{i}.attn_norm.weight": (c.dim,),
            f"blk.{i}.attn_q.weight": (c.n_heads * c.head_dim, c.dim),
            f"blk.{i}.attn_k.weight": (c.n_kv_heads * c.head_dim, c.dim),
            f"blk.{i}.attn_v.weight": (c.n_kv_heads * c.head_dim, c.dim),
            f"blk.{i}.attn_output.weight": (c.dim, c.n_heads * c.head_dim),
            f"blk.{i}.ffn_norm.weight": (c.dim,),
            f"blk.{i}.ffn_gate.weight": (c.ffn_dim, c.dim),
            f"blk.{i}.ffn_up.weight": (c.ffn_dim, c.dim),
            f"blk.{i}.ffn_down.weight": (c.dim, c.ffn_dim),
        }
    return shapes


def lower(c: Config, w: Weights, b: Builder) -> Program:
    """The forward pass."""
    q_cols, kv_cols = c.n_heads * c.head_dim, c.n_kv_heads * c.head_dim
    style = "pairs"  # GGUF's llama stores q and k with rotated columns side by side

    def norm(name: str) -> int:
        return b.constant(w.vector(name))

    x = b.embed(w.matrix("token_embd.weight"))
    angles = b.rope_angles(rope_frequencies(c.head_dim, c.rope_theta), style, c.head_dim)
    residual = None  # added to x by the next norm
    for b.layer in range(c.n_layers):
        p = f"blk.{b.layer}."

        h = b.rms_norm(x, norm(p + "attn_norm.weight"), c.norm_eps, residual)
        qkv = b.matmul(h, *(w.matrix(f"{p}attn_{part}.weight") for part in "qkv"))
        q, k, v = View(qkv, 0, q_cols), View(qkv, q_cols, kv_cols), View(qkv, q_cols + kv_cols, kv_cols)
        b.rope(q, angles, c.head_dim)
        b.rope(k, angles, c.head_dim)
        kv_at = b.kv_write(k, v, c.head_dim, angles)
        a = b.attention(q, c.n_kv_heads, c.head_dim, kv_at, c.head_dim**-0.5)
        residual = b.matmul(a, w.matrix(p + "attn_output.weight"))

        h = b.rms_norm(x, norm(p + "ffn_norm.weight"), c.norm_eps, residual)
        gate_up = b.matmul(h, w.matrix(p + "ffn_gate.weight"), w.matrix(p + "ffn_up.weight"))
        residual = b.matmul(b.swiglu(gate_up, c.ffn_dim), w.matrix(p + "ffn_down.weight"))
    b.layer = -1

    h = b.rms_norm(x, norm("output_norm.weight"), c.norm_eps, residual, out_rows=True)
    head = "output.weight" if "output.weight" in w else "token_embd.weight"
    return b.finish(b.matmul(h, w.matrix(head), out_rows=True), c.vocab_size)
