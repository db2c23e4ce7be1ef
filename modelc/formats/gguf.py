"""Reads GGUF files, versions 2 and 3, whole or split; tensors stay where they are, as views of the mapped file.

Source: ggml's GGUF specification. A file is: magic, version, two counts, metadata (key, type, value), tensor table
(name, dimensions innermost first, type, offset), padding to the alignment, tensor data.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from mmap import mmap
from os import PathLike
from pathlib import Path
from reprlib import repr as short_repr

import numpy as np

from modelc.dtypes import DTYPES_BY_GGML_ID, DType
from modelc.errors import BadFileError, UnsupportedError
from modelc.formats.architecture import infer_architecture
from modelc.formats.gguf_values import TRUNCATED, Cursor
from modelc.formats.mapping import map_file
from modelc.formats.signature import GGUF_MAGIC, HEAD_BYTES, looks_like
from modelc.ir import JSON, Model, Tensor, verify

VERSIONS = (2, 3)
MAX_KEYS = 1 << 16
MAX_TENSORS = 1 << 18
MAX_DIMS = 4
DEFAULT_ALIGNMENT = 32
MAX_ALIGNMENT = 1 << 20

# The least that an entry takes in the file: name length, type or dimensions, value or offset.
_LEAST_KEY_BYTES = 13
_LEAST_TENSOR_BYTES = 24

_SPLIT_NAME = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.DOTALL)
_SPLIT_KEYS = ("split.no", "split.count", "split.tensors.count")

# Types of ggml that modelc does not compute with, or that no longer exist; named so that the error can say which.
_OTHER_TYPES = {
    4: "Q4_2",
    5: "Q4_3",
    9: "Q8_1",
    15: "Q8_K",
    16: "IQ2_XXS",
    17: "IQ2_XS",
    18: "IQ3_XXS",
    19: "IQ1_S",
    21: "IQ3_S",
    22: "IQ2_S",
    29: "IQ1_M",
    31: "Q4_0_4_4",
    32: "Q4_0_4_8",
    33: "Q4_0_8_8",
    34: "TQ1_0",
    35: "TQ2_0",
    36: "IQ4_NL_4_4",
    37: "IQ4_NL_4_8",
    38: "IQ4_NL_8_8",
    39: "MXFP4",
    40: "NVFP4",
}


@dataclass(frozen=True, slots=True)
class _Entry:
    """A row of the tensor table; `offset` counts from the start of the tensor data."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    offset: int
    nbytes: int


def read(path: str | PathLike[str]) -> Model:
    """Reads a GGUF file; of a split one, any part may be named, and all are read.

    Args:
        path: A `.gguf` file.

    Returns:
        The model; tensors are read-only views of the mapped files.

    Raises:
        NotFoundError: The file, or another part of a split file, does not exist.
        BadFileError: Damaged, truncated or hostile content.
        UnsupportedError: A version, byte order or tensor type that modelc does not read.
    """
    path = Path(path)
    metadata, tensors = _read_part(path)
    count = metadata.get("split.count", 0)
    stem = path.stem
    if count not in (0, 1):  # a file merged again from parts says 0
        metadata, tensors, stem = _read_parts(path, count)
    for key in _SPLIT_KEYS:
        metadata.pop(key, None)
    architecture = metadata.get("general.architecture") or infer_architecture(tensors)
    if not isinstance(architecture, str):
        raise _wrong_key(path, "general.architecture", "a string", architecture)
    model = Model(stem, architecture, "gguf", metadata, {name: tensors[name] for name in sorted(tensors)})
    verify(model, path)
    return model


def _read_parts(path: Path, count: JSON) -> tuple[dict[str, JSON], dict[str, Tensor], str]:
    """All parts of a split file: the first part's metadata, the tensors of all, the name without the numbers."""
    match = _SPLIT_NAME.fullmatch(path.name)
    if match is None or int(match["count"]) != count:
        raise _wrong_key(path, "split.count", "the count in the name, NAME-00001-of-0000N.gguf", count)
    tensors: dict[str, Tensor] = {}
    first: dict[str, JSON] = {}
    for number in range(int(match["count"])):
        part = path.with_name(f"{match['stem']}-{number + 1:05d}-of-{match['count']}.gguf")
        metadata, found = _read_part(part)
        for key, right in (("split.no", number), ("split.count", count)):
            if metadata.get(key) != right:
                raise _wrong_key(part, key, right, metadata.get(key))
        for name in found.keys() & tensors.keys():
            raise BadFileError("a tensor is in two parts of a split file", path=part, tensor=name)
        tensors.update(found)
        first = first or metadata
    total = first.get("split.tensors.count", len(tensors))
    if total != len(tensors):
        raise _wrong_key(path, "split.tensors.count", len(tensors), total)
    return first, tensors, match["stem"]


def _wrong_key(path: Path, key: str, expected: object, got: object) -> BadFileError:
    return BadFileError(f"metadata key {key} is wrong", path=path, expected=expected, got=short_repr(got))


def _read_part(path: Path) -> tuple[dict[str, JSON], dict[str, Tensor]]:
    """Metadata and tensors of one file."""
    data = map_file(path)
    _check_magic(data, path)
    cursor = Cursor(data, path)
    cursor.pos = 8
    n_tensors = cursor.count("tensors", _LEAST_TENSOR_BYTES, MAX_TENSORS)
    n_keys = cursor.count("metadata keys", _LEAST_KEY_BYTES, MAX_KEYS)
    metadata = _read_metadata(cursor, n_keys)
    alignment = _alignment(metadata, path)
    entries = _read_table(cursor, n_tensors, alignment, path)
    data_start = -(-cursor.pos // alignment) * alignment
    _check_places(entries, data_start, cursor.size, path)
    stored = np.frombuffer(data, np.uint8)
    tensors = {}
    for entry in entries:
        start = data_start + entry.offset
        tensors[entry.name] = Tensor(entry.name, entry.dtype, entry.shape, stored[start : start + entry.nbytes])
    return metadata, tensors


def _check_magic(data: mmap, path: Path) -> None:
    head = data[:HEAD_BYTES]
    if not head.startswith(GGUF_MAGIC):
        hint = "name the format with -f, or download the file again"
        raise BadFileError("not a GGUF file", path=path, offset=0, expected="GGUF", got=looks_like(head), hint=hint)
    if len(head) < 24:
        raise BadFileError(
            "the file ends inside its header", path=path, expected="24 bytes", got=len(head), hint=TRUNCATED
        )
    version = int.from_bytes(head[4:8], "little")
    if version in VERSIONS:
        return
    if int.from_bytes(head[4:8], "big") in VERSIONS:
        raise UnsupportedError("a big-endian GGUF file", path=path, hint="convert it to little-endian")
    raise UnsupportedError(
        "GGUF version not supported",
        path=path,
        offset=4,
        expected="2 or 3",
        got=version,
        hint="convert the model again with a newer tool" if version < 2 else "look for a newer modelc",
    )


def _read_metadata(cursor: Cursor, n_keys: int) -> dict[str, JSON]:
    metadata: dict[str, JSON] = {}
    for _ in range(n_keys):
        start = cursor.pos
        key = cursor.name("a metadata key")
        if key in metadata:
            cursor.pos = start
            raise cursor.error("a metadata key appears twice", got=f"'{key}'")
        metadata[key] = cursor.value(cursor.u32())
    return metadata


def _alignment(metadata: dict[str, JSON], path: Path) -> int:
    alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if type(alignment) is not int or not 8 <= alignment <= MAX_ALIGNMENT or alignment & (alignment - 1):
        raise _wrong_key(path, "general.alignment", f"a power of two from 8 to {MAX_ALIGNMENT}", alignment)
    return alignment


def _read_table(cursor: Cursor, n_tensors: int, alignment: int, path: Path) -> list[_Entry]:
    entries = []
    seen: set[str] = set()
    for _ in range(n_tensors):
        start = cursor.pos
        name = cursor.name("a tensor name")
        if name in seen:
            cursor.pos = start
            raise cursor.error("two tensors have the same name", got=f"'{name}'")
        seen.add(name)
        n_dims = cursor.u32()
        if n_dims > MAX_DIMS:
            raise _wrong_tensor("too many dimensions", path, name, f"at most {MAX_DIMS}", n_dims)
        shape = tuple(cursor.u64() for _ in range(n_dims))[::-1]
        dtype = _dtype(cursor.u32(), path, name)
        offset = cursor.u64()
        cols = shape[-1] if shape else 1
        if 0 in shape or cols % dtype.block_cols:
            expected = f"no zero, and rows of a multiple of {dtype.block_cols} for {dtype.name}"
            raise _wrong_tensor("a wrong shape", path, name, expected, list(shape))
        if prod(shape) > cursor.size * 8:
            # Every type takes more than a bit an element.
            raise _wrong_tensor("more elements than the file has room for", path, name, cursor.size * 8, list(shape))
        if offset % alignment:
            raise _wrong_tensor("an unaligned tensor", path, name, f"a multiple of {alignment}", f"offset {offset}")
        entries.append(_Entry(name, dtype, shape, offset, dtype.nbytes(shape)))
    return entries


def _dtype(ggml_id: int, path: Path, name: str) -> DType:
    dtype = DTYPES_BY_GGML_ID.get(ggml_id)
    if dtype is not None:
        return dtype
    readable = ", ".join(dtype.name for dtype in DTYPES_BY_GGML_ID.values())
    if ggml_id in _OTHER_TYPES:
        what = f"tensor type {_OTHER_TYPES[ggml_id]} is not supported"
        raise UnsupportedError(what, path=path, tensor=name, expected=readable, hint="choose another quantization")
    raise BadFileError(
        "unknown tensor type", path=path, tensor=name, expected=readable, got=f"type {ggml_id}", hint=TRUNCATED
    )


def _wrong_tensor(what: str, path: Path, name: str, expected: object, got: object) -> BadFileError:
    return BadFileError(what, path=path, tensor=name, expected=expected, got=got, hint=TRUNCATED)


def _check_places(entries: list[_Entry], data_start: int, size: int, path: Path) -> None:
    """Every tensor lies inside the file, and no two share a byte."""
    free = 0
    for entry in sorted(entries, key=lambda entry: entry.offset):
        if entry.offset < free:
            raise _wrong_tensor("tensors overlap", path, entry.name, f"offset {free} or more", f"offset {entry.offset}")
        free = entry.offset + entry.nbytes
        if data_start + free > size:
            expected = f"a file of at least {data_start + free} bytes"
            raise _wrong_tensor(
                "tensor data runs past the end of the file", path, entry.name, expected, f"{size} bytes"
            )
