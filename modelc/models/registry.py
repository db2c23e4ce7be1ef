"""Which file lowers which architecture."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from typing import Any, Protocol

from modelc.errors import UnsupportedError
from modelc.ir import Model
from modelc.models import bert, gemma3, gpt2, llama, mlp
from modelc.models.hugging_face import HuggingFace
from modelc.models.weights import Shapes, Weights
from modelc.program import Builder, Program


class ArchitectureFile(Protocol):
    """The parts of an architecture's file: configuration, tensors, forward pass."""

    Config: Any  # with class methods from_gguf(model) and from_hf(model)

    def tensors(self, c: Any) -> Shapes:
        """Every tensor that must be there, with its shape."""

    def optional_tensors(self, c: Any) -> Shapes:
        """Tensors that may be there."""

    def lower(self, c: Any, w: Weights, b: Builder) -> Program:
        """The forward pass."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """An architecture: its file, and how Hugging Face's checkpoints name its tensors.

    `kind` is what its models are: `decoder`, `encoder` or `mlp`.
    """

    file: ArchitectureFile
    hugging_face: HuggingFace
    kind: str = "decoder"


LLAMA = Architecture(llama, llama.HUGGING_FACE)
ARCHITECTURES = {
    "bert": Architecture(bert, bert.HUGGING_FACE, "encoder"),
    "gemma3": Architecture(gemma3, gemma3.HUGGING_FACE),
    "gpt2": Architecture(gpt2, gpt2.HUGGING_FACE),
    "llama": LLAMA,
    "mistral": LLAMA,
    "mlp": Architecture(mlp, mlp.HUGGING_FACE, "mlp"),
    "phi3": Architecture(llama, llama.HUGGING_FACE_FUSED),
    "qwen2": LLAMA,
    "qwen3": LLAMA,
    "smollm": LLAMA,
}


@dataclass(frozen=True, slots=True)
class Lowered:
    """A model whose weights are in place and whose configuration is checked; `program` makes its table."""

    config: Any
    weights: Weights
    architecture: Architecture

    def program(self, builder: Builder) -> Program:
        """The forward pass, written by `builder`."""
        return self.architecture.file.lower(self.config, self.weights, builder)


def architecture_of(model: Model) -> Architecture:
    """The architecture of `model`.

    Raises:
        UnsupportedError: It is not known.
    """
    architecture = ARCHITECTURES.get(model.architecture)
    if architecture is None:
        raise UnsupportedError(
            "architecture", got=model.architecture, expected=f"one of {', '.join(sorted(ARCHITECTURES))}"
        )
    return architecture


def lower(model: Model) -> Lowered:
    """Check `model` against its architecture.

    Raises:
        UnsupportedError: the architecture, or something its configuration asks for, is not known.
        BadFileError: a hyperparameter or tensor is missing or has the wrong shape.
    """
    architecture = architecture_of(model)
    file = architecture.file
    from_hf = is_hugging_face(model)
    config = file.Config.from_hf(model) if from_hf else file.Config.from_gguf(model)
    source = architecture.hugging_face if from_hf else None
    weights = Weights(model, file.tensors(config), file.optional_tensors(config), source)
    refuse_unknown_layers(model, weights.sources)
    return Lowered(config, weights, architecture)


def is_hugging_face(model: Model) -> bool:
    """Whether `model` has Hugging Face's configuration and names; otherwise they are GGUF's."""
    return isinstance(model.metadata.get("config"), dict)


# A layer's tensor that is not asked for would be left out of the sum; these are buffers, not weights.
LAYER = re.compile(r"blk\.\d+\.|(model\.)?layers\.\d+\.|(transformer\.)?h\.\d+\.|(bert\.)?encoder\.layer\.\d+\.")
BUFFERS = re.compile(r".*(rotary_emb\.inv_freq|\.attn\.bias|\.attn\.masked_bias)")


def refuse_unknown_layers(model: Model, known: Container[str]) -> None:
    """Raise for a layer's tensor that is not among the `known` ones.

    Raises:
        UnsupportedError: There is one.
    """
    for name in model.tensors:
        if LAYER.match(name) and name not in known and not BUFFERS.fullmatch(name):
            raise UnsupportedError(
                "a layer's tensor that this architecture does not know", tensor=name, got=f"in a {model.architecture}"
            )
