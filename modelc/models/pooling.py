"""How a sentence encoder makes one vector of a text's hidden states: from GGUF's key, or sentence-transformers' files.

Source: GGUF's `pooling_type` (llama.cpp, which divides by the length as well); `modules.json` and
    `1_Pooling/config.json` of sentence-transformers.
"""

from __future__ import annotations

from dataclasses import dataclass

from modelc.errors import BadFileError, UnsupportedError
from modelc.ir import Model
from modelc.models.hyperparameters import Hyperparameters

# What GGUF's numbers stand for; `none` leaves the choice to us.
GGUF_MODES = {0: "mean", 1: "mean", 2: "cls", 3: "last"}
HF_MODES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt",
    "pooling_mode_lasttoken": "last",
    "pooling_mode_weightedmean_tokens": "weighted mean",
}
MODES = ("cls", "last", "max", "mean", "mean_sqrt")
STAGES = ("Transformer", "Pooling", "Normalize")


@dataclass(frozen=True, slots=True)
class Pooling:
    """From hidden states to an embedding.

    Attributes:
        mode: `cls` the first token's, `last` the last one's, `max`, `mean`, `mean_sqrt` (the sum by the root of the
            length).
        normalized: whether the vector is divided by its length.
    """

    mode: str
    normalized: bool


def pooling_from_gguf(keys: Hyperparameters) -> Pooling:
    """From the key `pooling_type`; GGUF has no key for normalisation, and who uses these files expects it."""
    number = keys.integer("pooling_type", 0, low=0, high=255)
    if number not in GGUF_MODES:
        raise UnsupportedError("pooling_type", got=number, expected=f"one of {', '.join(map(str, GGUF_MODES))}")
    return Pooling(GGUF_MODES[number], normalized=True)


def pooling_to_gguf(pooling: Pooling) -> int:
    """The number for `pooling_type`.

    Raises:
        UnsupportedError: GGUF has none.
    """
    numbers = {mode: number for number, mode in GGUF_MODES.items() if number}
    if pooling.mode not in numbers:
        raise UnsupportedError("GGUF has no number for this pooling", got=pooling.mode, expected=", ".join(numbers))
    return numbers[pooling.mode]


def pooling_from_hf(model: Model) -> Pooling:
    """From `modules.json` and `1_Pooling/config.json`; without them the plain mean, as sentence-transformers does."""
    modules = model.metadata.get("modules") or []
    if not isinstance(modules, list):
        raise BadFileError("modules.json has another form", expected="a list", got=type(modules).__name__)
    stages = [_stage(module) for module in modules]
    unknown = next((stage for stage in stages if stage not in STAGES), None)
    if unknown is not None:
        raise UnsupportedError("a stage of modules.json", got=unknown, expected=f"one of {', '.join(STAGES)}")
    keys = Hyperparameters(model.metadata).section("pooling")
    modes = [mode for key, mode in HF_MODES.items() if keys.flag(key, False)] or ["mean"]
    if len(modes) != 1 or modes[0] not in MODES:
        raise UnsupportedError("pooling of 1_Pooling/config.json", got=", ".join(modes), expected="one simple mode")
    return Pooling(modes[0], normalized="Normalize" in stages)


def _stage(module: object) -> str:
    kind = module.get("type") if isinstance(module, dict) else None
    if not isinstance(kind, str):
        raise BadFileError("a stage of modules.json has no type", expected="the name of a class", got=repr(kind)[:80])
    return kind.rpartition(".")[2]
