"""What an operator is to the runner: a function, and what may be assumed about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from modelc.onnx.values import Value


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator from one version of its domain on.

    Attributes:
        run: (call, *inputs) -> a value, a tuple of them for several outputs, or `Lowered`. Inputs that are left out are
            None.
        data: how many inputs, from the first, are data; the others decide shapes or are read in Python. None for all.
        random: whether equal inputs give different outputs.
        of_shape: whether outputs depend on the inputs' shapes alone.
    """

    run: Callable[..., Any]
    data: int | None = None
    random: bool = False
    of_shape: bool = False


class Lowered:
    """Outputs that the emitted instructions alone compute, from the data inputs: recorded runs repeat only those."""

    __slots__ = ("outputs",)

    def __init__(self, *outputs: Value) -> None:
        self.outputs = outputs


# Versions of an operator: the one with the highest version up to the model's opset counts.
Versions = dict[int, "Operator | Callable[..., Any]"]
Table = dict[str, "Versions | Operator | Callable[..., Any]"]


def parametric(run: Callable[..., Any], data: int = 1) -> Operator:
    """An operator whose inputs after the first `data` are parameters."""
    return Operator(run, data)
