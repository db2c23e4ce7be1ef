"""Which file of a folder holds the model, and which files make up a model."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from modelc.errors import BadFileError
from modelc.formats.checkpoint import index_of, shards_of, sidecar_files
from modelc.formats.mapping import exists, is_folder, names_in

# Names that stand for the model whatever else is in the folder; the first wins.
_MARKS: tuple[tuple[str, str], ...] = (
    ("safetensors", "model.safetensors"),
    ("safetensors", "model.safetensors.index.json"),
    ("pytorch", "pytorch_model.bin"),
    ("pytorch", "pytorch_model.bin.index.json"),
    ("onnx", "model.onnx"),
)
# Without them: the only file, or the only split one, of the first format that has any.
_SUFFIXES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("safetensors", (".safetensors",)),
    ("gguf", (".gguf",)),
    ("onnx", (".onnx",)),
    ("pytorch", (".pt", ".pth", ".bin")),
)
_PART = re.compile(r"(?P<stem>.+)-\d{5}-of-(?P<count>\d{5}\.\w+)", re.DOTALL)


def weights_in(folder: Path, format: str | None = None) -> tuple[Path, str]:
    """The file to read of a model's folder.

    Args:
        folder: The folder.
        format: The format to look for; None for any.

    Returns:
        The weights file, the index of its shards or its first part, and its format.

    Raises:
        BadFileError: No such file, or several and no telling which.
    """
    names = sorted(names_in(folder))
    for mark_format, name in _MARKS:
        if format in (None, mark_format) and name in names:
            return folder / name, mark_format
    for suffix_format, suffixes in _SUFFIXES:
        found = [name for name in names if Path(name).suffix.lower() in suffixes]
        if not found or format not in (None, suffix_format):
            continue
        index = index_of(folder / found[0])
        if index is not None:
            return index, suffix_format
        if len(_models(found)) == 1:
            return folder / found[0], suffix_format
        got = ", ".join(found)
        raise BadFileError("several models in this folder", path=folder, got=got, hint="name a file in it")
    raise BadFileError("no model in this folder", path=folder, expected="model.safetensors", hint="name a file in it")


def files_of(path: Path) -> list[Path]:
    """All files that make up the model at `path`, a file or folder: weights with their parts, and what stands beside.

    Raises:
        BadFileError: A folder without a model, or a damaged index.
    """
    if is_folder(path):
        path = weights_in(path)[0]
    index = index_of(path)
    beside = list(sidecar_files(path.parent).values()) if path.suffix.lower() not in (".gguf", ".modelc") else []
    if index is not None:
        return [index, *(shard for shard in shards_of(index) if exists(shard)), *beside]
    match = _PART.fullmatch(path.name)
    if match is None:
        return [path, *beside]
    alike = [name for name in names_in(path.parent) if _models([name]) == _models([path.name])]
    return sorted(path.with_name(name) for name in alike) + beside


def _models(names: Iterable[str]) -> set[tuple[str, str]]:
    """The models that files of these names belong to: all parts of a split file to one."""
    parts = [(_PART.fullmatch(name), name) for name in names]
    return {(match["stem"], match["count"]) if match else (name, "") for match, name in parts}
