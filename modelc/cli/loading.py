"""Loading a model on the command line: packed on the way, kernels compiled, with progress on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelc.cli.progress import ProgressBar
from modelc.errors import located
from modelc.resolve import as_modelc

if TYPE_CHECKING:
    from modelc.runtime import LoadedModel
    from modelc.runtime.adapters import AdapterReport

COMPILING = "compiling kernels, once for this machine"


def load_model(path: Path, **options: Any) -> LoadedModel:
    """Load the model at `path`, a `.modelc` or a weights file.

    Args:
        path: the file.
        **options: keywords of `runtime.load`.

    Raises:
        ModelcError: the file cannot be read or run, or an option is out of range.
    """
    from modelc import runtime

    with ProgressBar() as bar:
        packed = as_modelc(path, bar)
    with ProgressBar(str) as bar, located(path, packed):
        return runtime.load(
            packed,
            progress=lambda done, total, _: bar(done, total, COMPILING),
            **options,
        )


def parse_adapter(text: str) -> tuple[Path, float]:
    """Split `FILE[:ALPHA]` as in `pirate.safetensors:0.5`; alpha is 1 where there is none."""
    path, colon, alpha = text.rpartition(":")
    try:
        return (Path(path), float(alpha)) if colon and path else (Path(text), 1.0)
    except ValueError:  # a colon of the file's name
        return Path(text), 1.0


def load_adapters(model: LoadedModel, adapters: Sequence[tuple[Path, float]]) -> AdapterReport:
    """Load LoRA adapters that work together.

    Raises:
        ModelcError: a file cannot be read, or belongs to another model.
    """
    with ProgressBar(str) as bar:
        return model.load_loras(adapters, progress=lambda done, total, _: bar(done, total, COMPILING))
