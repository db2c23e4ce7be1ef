"""How a model is loaded: threads, number formats, context, memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from modelc.errors import BadInputError
from modelc.kernels.kv_pages import FORMS
from modelc.kernels.objects import ObjectCache
from modelc.kernels.source import KernelSource

ACTIVATIONS = {"int8": "a8", "int16": "a16"}  # what users say: the format's name in opcodes
KV_TYPES = tuple(FORMS)


@dataclass(frozen=True, slots=True)
class Options:
    """Choices that are fixed for a loaded model.

    Attributes:
        threads: size of the team.
        activations: what block-quantized weights are multiplied with: `int8` or `int16`.
        kv: type of keys and values: `f16`, `f32`, `int8` or `mixed`.
        max_context: longest sequence; with it, a full context is shifted.
        anchor_tokens: first tokens of a sequence that a shift leaves.
        kv_memory: bytes for keys and values; None takes a share of the machine's memory.
        gamma: tokens that speculation proposes for one pass.
        kv_hot_window: of `mixed`: so many newest positions, a query's own among them, are read in float32.
        kernels: where compiled functions come from; None for the compiler and its cache.
    """

    threads: int
    activations: str = "int8"
    kv: str = "f16"
    max_context: int | None = None
    anchor_tokens: int = 0
    kv_memory: int | None = None
    gamma: int = 0
    kv_hot_window: int = 64
    kernels: KernelSource | None = None

    @property
    def kernel_source(self) -> KernelSource:
        """Where compiled functions come from."""
        return ObjectCache() if self.kernels is None else self.kernels

    def check(self) -> None:
        """Raise BadInputError for a choice that does not exist, or has no effect."""
        if self.activations not in ACTIVATIONS:
            _refuse("activations", " or ".join(ACTIVATIONS), self.activations)
        if self.kv not in KV_TYPES:
            _refuse("kv", " or ".join(KV_TYPES), self.kv)
        for name, low, high in _RANGES:
            value: Any = getattr(self, name)
            if value is not None and not (isinstance(value, int) and low <= value <= high):
                expected = f"an integer from {low} to {high}"
                raise BadInputError("out of range", param=name, expected=expected, got=value)
        if self.anchor_tokens and self.max_context is None:
            what = "nothing is ever dropped without max_context"
            raise BadInputError(what, param="anchor_tokens", got=self.anchor_tokens, hint="set --max-context as well")


_RANGES = (
    ("threads", 1, 255),
    ("max_context", 2, 1 << 31),
    ("anchor_tokens", 0, 1 << 31),
    ("kv_memory", 1, 1 << 62),
    ("gamma", 0, 32),
    ("kv_hot_window", 0, 1 << 31),
)


def _refuse(param: str, expected: str, got: object) -> None:
    raise BadInputError("no such choice", param=param, expected=expected, got=got)
