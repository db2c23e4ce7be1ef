"""MLP: stacked linear layers with ReLU between them: `layer0.weight`, `layer0.bias`, …, or one `weight` and `bias`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from modelc.errors import BadFileError
from modelc.ir import Model
from modelc.models.hugging_face import HuggingFace
from modelc.models.weights import Shapes, Weights
from modelc.program import Builder, Program

WEIGHT = re.compile(r"layer(\d+)\.weight")


@dataclass(frozen=True, slots=True)
class Config:
    """Hyperparameters: all of them are in the tensors."""

    names: tuple[str, ...]  # of the layers, in order: `layer0.`; of a single one it may be empty
    sizes: tuple[int, ...]  # inputs of the first layer, then outputs of each

    @classmethod
    def from_tensors(cls, model: Model) -> Config:
        """From names and shapes."""
        numbers = sorted(int(match[1]) for name in model.tensors if (match := WEIGHT.fullmatch(name)))
        names = tuple(f"layer{number}." for number in numbers) or ("",)
        if numbers and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
            missing = next(n for n in range(numbers[0], numbers[-1]) if n not in numbers)
            raise BadFileError("tensor missing", tensor=f"layer{missing}.weight", expected="layers without a gap")
        sizes = list[int]()
        for name in names:
            tensor = model.tensors.get(name + "weight")
            if tensor is None or len(tensor.shape) != 2:
                got = None if tensor is None else str(tensor.shape)
                raise BadFileError("an MLP's weights", tensor=name + "weight", expected="a matrix", got=got)
            rows, cols = tensor.shape
            if sizes and cols != sizes[-1]:
                expected = f"({rows}, {sizes[-1]}), the outputs of the layer before"
                raise BadFileError("wrong shape", tensor=tensor.name, expected=expected, got=str(tensor.shape))
            sizes += [rows] if sizes else [cols, rows]
        return cls(names, tuple(sizes))

    from_gguf = from_hf = from_tensors


def tensors(c: Config) -> Shapes:
    """Every weight, with its shape."""
    return {name + "weight": (rows, cols) for name, cols, rows in zip(c.names, c.sizes, c.sizes[1:], strict=False)}


def optional_tensors(c: Config) -> Shapes:
    """Biases."""
    return {name + "bias": (rows,) for name, rows in zip(c.names, c.sizes[1:], strict=True)}


HUGGING_FACE = HuggingFace("", {})


def lower(c: Config, w: Weights, b: Builder) -> Program:
    """The forward pass; rows are filled from outside."""
    x = b.input(c.sizes[0])
    for b.layer, name in enumerate(c.names):
        weight = w.matrix(name + "weight")
        last = b.layer == len(c.names) - 1
        x = b.matmul(x, weight)
        bias = w.vector_or_zero(name + "bias", weight.groups * 16)
        if name + "bias" in w or not last:
            b.bias(x, b.constant(bias), "none" if last else "relu")
    b.layer = -1
    return b.finish(x, c.sizes[-1])
