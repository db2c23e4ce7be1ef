"""The models that are measured, in the user's cache folder.

SmolLM2-135M as published, and requantized by llama.cpp; Gemma-3-270M as published.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.engines import BenchError, Engine
from modelc.resolve import as_modelc
from modelc.settings import cache_folder
from tools.fetch_smollm2 import GEMMA3, SMOLLM2, FetchError, fetch, models_folder

PUBLISHED = "Q4_1"
REQUANTIZED = ("Q4_0", "Q8_0", "Q4_K_M", "F16")
GEMMA = "Gemma3-Q4_K_M"
NAMES = (PUBLISHED, *REQUANTIZED, GEMMA)


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """One model, for modelc (`packed`) and for the others (`gguf`)."""

    name: str
    gguf: Path
    packed: Path


def prepare(name: str, quantizer: Engine | None) -> ModelFiles:
    """Return the files of a model, making what is not there yet.

    Args:
        name: one of NAMES.
        quantizer: llama.cpp, which REQUANTIZED are made by.

    Raises:
        BenchError: the model cannot be fetched or made.
    """
    try:
        published = fetch(models_folder(), GEMMA3 if name == GEMMA else SMOLLM2)
    except FetchError as error:
        raise BenchError(str(error)) from error
    gguf = _requantized(published, name, quantizer) if name in REQUANTIZED else published
    return ModelFiles(name, gguf, as_modelc(gguf))


def _requantized(published: Path, name: str, quantizer: Engine | None) -> Path:
    folder = cache_folder() / "bench"
    target = folder / published.name.replace(PUBLISHED, name)
    if target.exists():
        return target
    if quantizer is None:
        raise BenchError(f"{name} is made by llama.cpp, which is not set up: run `make peers`")
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(".part")
    quantizer.ask("quantize", source=str(published), target=str(unfinished), kind=name)
    unfinished.replace(target)
    return target
