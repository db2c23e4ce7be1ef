"""Which file lowers which architecture."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from modelc.errors import UnsupportedError
from modelc.ir import Model
from modelc.models import gpt2, llama
from modelc.models.weights import Names, Shapes, Weights
from modelc.program import Builder, Program


@dataclass(frozen=True, slots=True)
class Architecture:
    """The parts of an architecture's file that lowering needs."""

    from_gguf: Callable[[Model], Any]
    from_hf: Callable[[Model], Any]
    tensors: Callable[[Any], Shapes]
    optional: Callable[[Any], Shapes]
    names: Callable[[Any], Names]
    transposed: Callable[[Any, str], bool]
    lower: Callable[[Any, Weights, Builder], Program]

    def config(self, model: Model) -> Any:
        """The configuration, from the kind of metadata that the model has."""
        return self.from_hf(model) if isinstance(model.metadata.get("config"), dict) else self.from_gguf(model)


LLAMA = Architecture(
    llama.Config.from_gguf,
    llama.Config.from_hf,
    llama.tensors,
    llama.optional_tensors,
    llama.names,
    lambda config, name: False,
    llama.lower,
)
GPT2 = Architecture(
    gpt2.Config.from_gguf,
    gpt2.Config.from_hf,
    gpt2.tensors,
    gpt2.optional_tensors,
    gpt2.names,
    gpt2.transposed,
    gpt2.lower,
)
ARCHITECTURES = {"gpt2": GPT2, "llama": LLAMA, "mistral": LLAMA, "qwen2": LLAMA, "qwen3": LLAMA, "smollm": LLAMA}


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
    shapes, optional = architecture.tensors(config), architecture.optional(config)

    def transposed(name: str) -> bool:
        return architecture.transposed(config, name)

    weights = Weights(model, shapes, optional, architecture.names(config), transposed)
    _refuse_unknown_layers(model, weights)
    return Lowered(config, weights, architecture)


# A layer's tensor that is not asked for would be left out of the sum; these are buffers, not weights.
LAYER = re.compile(r"blk\.\d+\.|(model\.)?layers\.\d+\.|(transformer\.)?h\.\d+\.")
BUFFERS = re.compile(r".*(rotary_emb\.inv_freq|\.attn\.bias|\.attn\.masked_bias)")


def _refuse_unknown_layers(model: Model, weights: Weights) -> None:
    for name in model.tensors:
        if LAYER.match(name) and not weights.uses(name) and not BUFFERS.fullmatch(name):
            raise UnsupportedError(
                "a layer's tensor that this architecture does not know", tensor=name, got=f"in a {model.architecture}"
            )
