"""Which formats there are, how a file's is told, and who reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from mmap import mmap
from os import PathLike
from pathlib import Path

from modelc.errors import BadFileError, BadInputError, ModelcError, did_you_mean
from modelc.formats import gguf, json_text, modelc, onnx_weights, pytorch, safetensors
from modelc.formats.checkpoint import INDEX_SUFFIX
from modelc.formats.folder import weights_in
from modelc.formats.mapping import is_folder, map_file
from modelc.formats.safetensors_header import LENGTH_BYTES, looks_like_header
from modelc.formats.signature import GGUF_MAGIC, HEAD_BYTES, MODELC_MAGIC, ZIP_MAGIC, looks_like
from modelc.ir import Model

SNIFFED_BYTES = 64 << 20  # a larger file is not searched for a Safetensors header


@dataclass(frozen=True, slots=True)
class Format:
    """A file format.

    Attributes:
        title: Its name in messages.
        suffixes: File name endings that stand for it.
        holds: Whether a file's content is of this format; asked where the name says nothing.
        read: The reader.
    """

    title: str
    suffixes: tuple[str, ...]
    holds: Callable[[mmap], bool]
    read: Callable[[str | PathLike[str]], Model]


def detect(path: str | PathLike[str], format: str | None = None) -> str:
    """Tells the format of a file: from its name, then from its content.

    Args:
        path: A weights file, or a folder with one.
        format: The answer, where the user gives it.

    Returns:
        A key of `FORMATS`.

    Raises:
        NotFoundError: No such file.
        BadInputError: `format` is not a format.
        BadFileError: Neither name nor content tell.
    """
    return _locate(Path(path), format)[1]


def open_model(path: str | PathLike[str], format: str | None = None) -> Model:
    """Reads a weights file or folder of any format; its tensors are views of the mapped file.

    Args:
        path: The file, or a folder that holds one model, which then has the folder's name.
        format: A key of `FORMATS`; None to tell it from the file.

    Returns:
        The model, with every rule of the IR checked.

    Raises:
        NotFoundError: No such file.
        BadInputError: `format` is not a format.
        BadFileError: Damaged, truncated or hostile content.
        UnsupportedError: A format, version or type that modelc does not read.
    """
    path = Path(path)
    file, format = _locate(path, format)
    model = FORMATS[format].read(file)
    return model if file == path else replace(model, name=path.resolve().name or model.name)


def _locate(path: Path, format: str | None) -> tuple[Path, str]:
    """The file to read, and its format."""
    if format is not None and format not in FORMATS:
        hint = did_you_mean(format, FORMATS)
        raise BadInputError("unknown format", param="format", expected=", ".join(FORMATS), got=format, hint=hint)
    if is_folder(path):
        return weights_in(path, format)
    if format is not None:
        return path, format
    suffix = Path(path.name.removesuffix(INDEX_SUFFIX)).suffix.lower()
    for name, entry in FORMATS.items():
        if suffix in entry.suffixes:
            return path, name
    data = map_file(path)
    for name, entry in FORMATS.items():
        if entry.holds(data):
            return path, name
    got = looks_like(data[:HEAD_BYTES])
    hint = "name it with -f of `modelc pack`"
    raise BadFileError("unknown file format", path=path, got=got, expected=", ".join(FORMATS), hint=hint)


def _is_safetensors(data: mmap) -> bool:
    if len(data) > SNIFFED_BYTES or not looks_like_header(data):
        return False
    end = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "little")
    try:
        return isinstance(json_text.parse(data[LENGTH_BYTES:end], Path(), "the header"), dict)
    except ModelcError:
        return False


def _is_modelc(data: mmap) -> bool:
    return data[: len(MODELC_MAGIC)] == MODELC_MAGIC or modelc.is_compiled(data)


def _starts_with(magic: bytes) -> Callable[[mmap], bool]:
    return lambda data: data[: len(magic)] == magic


FORMATS: dict[str, Format] = {
    "gguf": Format("GGUF", (".gguf",), _starts_with(GGUF_MAGIC), gguf.read),
    "modelc": Format(".modelc", (".modelc",), _is_modelc, modelc.read),
    "pytorch": Format("PyTorch", (".pt", ".pth", ".bin"), _starts_with(ZIP_MAGIC), pytorch.read),
    "safetensors": Format("Safetensors", (".safetensors",), _is_safetensors, safetensors.read),
    "onnx": Format("ONNX", (".onnx",), lambda data: False, onnx_weights.read),
}
