"""Which file lowers which architecture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from modelc.errors import UnsupportedError
from modelc.ir import Model
from modelc.models import llama
from modelc.models.weights import Shapes, Weights
from modelc.program import Builder, Program


@dataclass(frozen=True, slots=True)
class Architecture:
    """The four parts of an architecture's file that lowering needs."""

    config: Callable[[Model], Any]
    tensors: Callable[[Any], Shapes]
    optional: Callable[[Any], Shapes]
    lower: Callable[[Any, Weights, Builder], Program]


ARCHITECTURES = {
    "llama": Architecture(
        llama.Config.from_gguf, llama.tensors, lambda c: {"output.weight": (c.vocab_size, c.dim)}, llama.lower
    ),
}


@dataclass(frozen=True, slots=True)
class Lowered:
    """A model whose weights are in place and whose configuration is checked; `program` makes its table."""

    config: Any
    weights: Weights
    architecture: Architecture

    def program(self, builder: Builder) -> Program:
        """The forward pass, written by `builder`."""
        return self.architecture.lower(self.config, self.weights, builder)


def lower(model: Model) -> Lowered:
    """Check `model` against its architecture.

    Raises:
        UnsupportedError: the architecture, or something its configuration asks for, is not known.
        BadFileError: a hyperparameter or tensor is missing or has the wrong shape.
    """
    architecture = ARCHITECTURES.get(model.architecture)
    if architecture is None:
        raise UnsupportedError(
            "architecture", got=model.architecture, expected=f"one of {', '.join(sorted(ARCHITECTURES))}"
        )
    config = architecture.config(model)
    return Lowered(config, Weights(model, architecture.tensors(config), architecture.optional(config)), architecture)
