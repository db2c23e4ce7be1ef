"""What the shell offers behind TAB: models of the store, and model files near what was typed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from modelc.settings import load_settings, store_folder
from modelc.store import Store

if TYPE_CHECKING:
    from cyclopts.completion import CompletionContext

MODEL_SUFFIXES = (".modelc", ".gguf", ".safetensors", ".onnx", ".pt", ".pth", ".bin")


def stored_names(_context: CompletionContext) -> list[str]:
    """Return the names in the store."""
    return [model.name for model in Store(store_folder(load_settings())).models()]


def model_references(context: CompletionContext) -> list[str]:
    """Return whatever a command takes for a model: names, names with a version, model files and folders."""
    found = []
    for model in Store(store_folder(load_settings())).models():
        found.append(model.name)
        found += [f"{model.name}:{version}" for version in model.versions]
    folder = context.incomplete.rpartition("/")[0]
    for path in sorted(Path(folder or ("/" if context.incomplete.startswith("/") else ".")).expanduser().glob("*")):
        shown = f"{folder}/{path.name}" if "/" in context.incomplete else path.name
        if path.is_dir() and not path.name.startswith("."):
            found.append(f"{shown}/")
        elif path.suffix.lower() in MODEL_SUFFIXES:
            found.append(shown)
    return found
