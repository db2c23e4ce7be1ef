"""The draft model of speculative decoding: an MLP that guesses the next token from the last one alone.

Embedding, fc1 + ReLU, fc2, logits. Its tensors lie beside those of the model that it drafts for.
"""

from __future__ import annotations

from dataclasses import dataclass

from modelc.errors import BadFileError
from modelc.ir import Model
from modelc.models.weights import Shapes, Weights
from modelc.program import Builder, Program

EMBED = "draft.embed.weight"
TARGET_EMBED = "token_embd.weight"


@dataclass(frozen=True, slots=True)
class Config:
    """Sizes, read from the tensors."""

    vocab_size: int  # the target's
    dim: int
    hidden_dim: int
    has_embed: bool  # else the target's embedding is used

    @classmethod
    def from_tensors(cls, model: Model, target: Weights) -> Config:
        """From the shapes of the draft's tensors and of the target's embedding."""
        borrowed = target.matrix(TARGET_EMBED)
        has_embed = EMBED in model.tensors
        dim = _matrix_shape(model, EMBED, "(vocabulary, dim)")[1] if has_embed else borrowed.cols
        hidden_dim, cols = _matrix_shape(model, "draft.fc1.weight", "(hidden, dim)")
        if cols != dim:
            raise BadFileError(
                "wrong shape",
                tensor="draft.fc1.weight",
                expected=f"({hidden_dim}, {dim})",
                got=f"({hidden_dim}, {cols})",
                hint=f"it reads {EMBED if has_embed else f'{TARGET_EMBED}, as there is no {EMBED}'}",
            )
        return cls(borrowed.rows, dim, hidden_dim, has_embed)


def _matrix_shape(model: Model, name: str, expected: str) -> tuple[int, int]:
    tensor = model.tensors.get(name)
    if tensor is None:
        raise BadFileError("tensor missing", tensor=name, expected=f"shape {expected}")
    if len(tensor.shape) != 2:
        raise BadFileError("wrong shape", tensor=name, expected=expected, got=str(tensor.shape))
    return tensor.shape[0], tensor.shape[1]


def tensors(c: Config) -> Shapes:
    """Every tensor, with its shape."""
    return {
        EMBED if c.has_embed else TARGET_EMBED: (c.vocab_size, c.dim),
        "draft.fc1.weight": (c.hidden_dim, c.dim),
        "draft.fc1.bias": (c.hidden_dim,),
        "draft.fc2.weight": (c.vocab_size, c.hidden_dim),
        "draft.fc2.bias": (c.vocab_size,),
    }


def is_draft_tensor(name: str) -> bool:
    """Whether a tensor of this name belongs to a draft."""
    return name.startswith("draft.")


def load(model: Model, target: Weights) -> tuple[Config, Weights]:
    """Check the draft in `model`, whose own weights are `target`.

    Raises:
        BadFileError: a tensor of the draft is missing or has the wrong shape.
        UnsupportedError: a type that is not known.
    """
    config = Config.from_tensors(model, target)
    return config, Weights(model, tensors(config), lender=target)


def lower(c: Config, w: Weights, b: Builder) -> Program:
    """The forward pass; the logits of every row are wanted."""
    x = b.embed(w.matrix(EMBED if c.has_embed else TARGET_EMBED))

    h = b.matmul(x, w.matrix("draft.fc1.weight"))
    b.bias(h, b.constant(w.vector("draft.fc1.bias")), "relu")

    y = b.matmul(h, w.matrix("draft.fc2.weight"))
    b.bias(y, b.constant(w.vector("draft.fc2.bias")))
    return b.finish(y, c.vocab_size)
