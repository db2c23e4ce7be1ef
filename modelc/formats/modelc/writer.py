"""Writes `.modelc` files: matrices in kernel layout, a checksum over every byte, the same bytes for the same model."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np
import numpy.typing as npt

from modelc.dtypes import DType
from modelc.errors import BadFileError, UnsupportedError
from modelc.formats.atomic import atomic_write
from modelc.formats.mapped_pages import release_pages
from modelc.formats.modelc import header_json
from modelc.formats.modelc.header import (
    COMPRESSIONS,
    MAX_HEADER_BYTES,
    TENSOR_ALIGNMENT,
    Entry,
    Header,
    align,
    checksum,
    data_start,
    encode_prefix,
    layout_of,
    stored_bytes,
)
from modelc.formats.modelc.pool import ordered_map
from modelc.formats.progress import Progress
from modelc.ir import MAX_INT, Model, Tensor, verify
from modelc.layout import lanes_bytes


class Conversion(Protocol):
    """What happens to tensors on their way into the file, one at a time, so that only a few exist converted."""

    def dtype_of(self, tensor: Tensor) -> DType:
        """The type that `convert` gives the tensor; the shape stays."""
        ...

    def convert(self, tensor: Tensor) -> Tensor:
        """The tensor as the file shall have it; called from several threads."""
        ...


def write(
    model: Model,
    path: str | PathLike[str],
    compress: bool = False,
    progress: Progress | None = None,
    conversion: Conversion | None = None,
) -> None:
    """Writes `model` to a `.modelc` file; `path` never stands for half of it.

    Args:
        model: Tensors in either layout.
        path: The file to create or replace, in an existing folder.
        compress: Whether tensors are compressed with zstd. Such a file is smaller, and not used in place.
        progress: Called as `progress(done_bytes, total_bytes, label)` after each tensor.
        conversion: What to do with each tensor; None to write them as they are.

    Raises:
        BadFileError: The model breaks a rule of the IR, or a tensor cannot be converted.
        BadInputError: `path` cannot be a file.
        UnsupportedError: The model has more tensors or metadata than a header may hold.
        WriteError: The system refuses to write, for example because the disk is full.
    """
    verify(model)
    path = Path(path)
    version = next(number for number, name in COMPRESSIONS.items() if name == ("zstd" if compress else "none"))
    # The header stands first and is known last, so room is kept for the longest that it can become.
    dtypes = {t.name: conversion.dtype_of(t) if conversion else t.dtype for t in model.tensors.values()}
    longest = [_longest_entry(t, dtypes[t.name], compress) for t in model.tensors.values()]
    room = len(_encode(model, version, longest, path))
    start = data_start(room)
    with atomic_write(path) as file:
        file.write(bytes(start))
        entries = _write_tensors(model, dtypes, file, start, compress, progress, conversion)
        text = _encode(model, version, entries, path).ljust(room)
        file_bytes = file.tell()
        file.seek(0)
        file.write(encode_prefix(version, text, file_bytes))
        file.write(text)


def _encode(model: Model, version: int, entries: list[Entry], path: Path) -> bytes:
    header = Header(model.name, model.architecture, model.source_format, version, model.metadata, tuple(entries))
    text = header_json.encode(header)
    for what, most, got in (
        ("too many tensors", header_json.MAX_TENSORS, len(entries)),
        ("too many metadata values", header_json.MAX_VALUES, header_json.count_values(text)),
        ("too much metadata", MAX_HEADER_BYTES, len(text)),
    ):
        if got > most:
            raise UnsupportedError(f"{what} for a .modelc file", path=path, expected=f"at most {most}", got=got)
    return text


def _longest_entry(tensor: Tensor, dtype: DType, compress: bool) -> Entry:
    digits, most = checksum(b""), MAX_INT
    layout = layout_of(dtype, tensor.shape)
    return Entry(tensor.name, dtype, tensor.shape, layout, most, most, digits, digits if compress else None)


def _write_tensors(
    model: Model,
    dtypes: dict[str, DType],
    file: BinaryIO,
    start: int,
    compress: bool,
    progress: Progress | None,
    conversion: Conversion | None,
) -> list[Entry]:
    def prepare(source: Tensor) -> tuple[Tensor, memoryview | bytes, str]:
        tensor = conversion.convert(source) if conversion else source
        stored = _stored(tensor).data
        return tensor, _compressed(stored) if compress else stored, checksum(stored)

    tensors = model.tensors.values()
    total = sum(stored_bytes(dtypes[tensor.name], tensor.shape) for tensor in tensors)
    done = 0
    entries = []
    for source, (tensor, content, stored_checksum) in zip(tensors, ordered_map(prepare, tensors), strict=True):
        offset = align(file.tell() - start, TENSOR_ALIGNMENT)
        file.write(bytes(start + offset - file.tell()))
        file.write(content)
        release_pages(source.stored)
        entries.append(
            Entry(
                tensor.name,
                tensor.dtype,
                tensor.shape,
                layout_of(tensor.dtype, tensor.shape),
                offset,
                len(content),
                stored_checksum,
                checksum(content) if compress else None,
            )
        )
        done += stored_bytes(tensor.dtype, tensor.shape)
        if progress:
            progress(done, total, "quantizing" if conversion else "packing")
    return entries


def _compressed(stored: memoryview) -> bytes:
    from modelc.formats.modelc import frames  # late: a plain file needs no zstd

    return frames.compress(stored)


def _stored(tensor: Tensor) -> npt.NDArray[np.uint8]:
    """The bytes of `tensor` in the layout that the file keeps it in."""
    stored = lanes_bytes(tensor) if layout_of(tensor.dtype, tensor.shape) == "lanes" else tensor.stored
    if stored.nbytes != stored_bytes(tensor.dtype, tensor.shape):
        raise BadFileError(
            "a tensor's bytes do not fit its shape and layout",
            tensor=tensor.name,
            expected=f"{stored_bytes(tensor.dtype, tensor.shape)} bytes",
            got=f"{stored.nbytes} bytes",
        )
    return stored
