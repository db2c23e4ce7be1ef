"""Which formats there are, how a file's is told, and who reads it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from mmap import mmap
from os import PathLike
from pathlib import Path

from modelc.errors import BadFileError, BadInputError, UnsupportedError, did_you_mean
from modelc.formats import gguf, modelc
from modelc.formats.mapping import is_folder, map_file, names_in
from modelc.formats.signature import GGUF_MAGIC, HEAD_BYTES, MODELC_MAGIC, ZIP_MAGIC, looks_like
from modelc.ir import Model

SNIFFED_BYTES = 64 << 20  # a larger file is not searched for a Safetensors header
FOLDER_MARKS = frozenset({"model.safetensors", "model.safetensors.index.json"})


@dataclass(frozen=True, slots=True)
class Format:
    """A file format.

    Attributes:
        title: Its name in messages.
        suffixes: File name endings that stand for it.
        holds: Whether a file's content is of this format; asked where the name says nothing.
        read: The reader; None for a format that is recognised and not read.
    """

    title: str
    suffixes: tuple[str, ...]
    holds: Callable[[mmap], bool]
    read: Callable[[str | PathLike[str]], Model] | None


def detect(path: str | PathLike[str], format: str | None = None) -> str:
    """Tells the format of a file: from its name, then from its content.

    Args:
        path: A weights file.
        format: The answer, where the user gives it.

    Returns:
        A key of `FORMATS`.

    Raises:
        NotFoundError: No such file.
        BadInputError: `format` is not a format.
        BadFileError: Neither name nor content tell.
    """
    path = Path(path)
    if format is not None:
        if format not in FORMATS:
            hint = did_you_mean(format, FORMATS)
            raise BadInputError("unknown format", param="format", expected=", ".join(FORMATS), got=format, hint=hint)
        return format
    if is_folder(path):
        if not FOLDER_MARKS.isdisjoint(names_in(path)):
            return "safetensors"
        raise BadFileError("no model in this folder", path=path, expected="model.safetensors", hint="name a file in it")
    for name, entry in FORMATS.items():
        if path.suffix.lower() in entry.suffixes:
            return name
    data = map_file(path)
    for name, entry in FORMATS.items():
        if entry.holds(data):
            return name
    got = looks_like(data[:HEAD_BYTES])
    raise BadFileError("unknown file format", path=path, got=got, expected=", ".join(FORMATS), hint="name it with -f")


def open_model(path: str | PathLike[str], format: str | None = None) -> Model:
    """Reads a weights file of any format; its tensors are views of the mapped file.

    Args:
        path: The file.
        format: A key of `FORMATS`; None to tell it from the file.

    Returns:
        The model, with every rule of the IR checked.

    Raises:
        NotFoundError: No such file.
        BadInputError: `format` is not a format.
        BadFileError: Damaged, truncated or hostile content.
        UnsupportedError: A format, version or type that modelc does not read.
    """
    entry = FORMATS[detect(path, format)]
    if entry.read is None:
        readable = " and ".join(other.title for other in FORMATS.values() if other.read)
        raise UnsupportedError(
            f"{entry.title} files cannot be read", path=path, expected=readable, hint="convert the model to GGUF"
        )
    return entry.read(path)


def _is_safetensors(data: mmap) -> bool:
    header_bytes = int.from_bytes(data[:8], "little")
    if len(data) > SNIFFED_BYTES or not 2 <= header_bytes <= len(data) - 8 or data[8:9] != b"{":
        return False
    try:
        return isinstance(json.loads(data[8 : 8 + header_bytes]), dict)
    except (ValueError, RecursionError):
        return False


def _starts_with(magic: bytes) -> Callable[[mmap], bool]:
    return lambda data: data[: len(magic)] == magic


FORMATS: dict[str, Format] = {
    "gguf": Format("GGUF", (".gguf",), _starts_with(GGUF_MAGIC), gguf.read),
    "modelc": Format(".modelc", (".modelc",), _starts_with(MODELC_MAGIC), modelc.read),
    "pytorch": Format("PyTorch", (".pt", ".pth", ".bin"), _starts_with(ZIP_MAGIC), None),
    "safetensors": Format("Safetensors", (".safetensors",), _is_safetensors, None),
    "onnx": Format("ONNX", (".onnx",), lambda data: False, None),
}
