"""Reads PyTorch checkpoints: the zip form of `torch.save`, whole or sharded; Safetensors in a zip, or misnamed.

Source: torch 1.6 to 2.13, `torch/serialization.py`. The archive has `NAME/data.pkl`, which describes the tensors as
strided views of storages, and `NAME/data/KEY` for each storage. Tensors whose elements follow each other stay where
they are, as views of the mapped file; others are made so in memory.
"""

from __future__ import annotations

from math import prod
from mmap import mmap
from os import PathLike
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from modelc.errors import BadFileError, UnsupportedError
from modelc.formats import safetensors
from modelc.formats.checkpoint import INDEX_SUFFIX, index_of, model_of, read_shards, read_sidecars
from modelc.formats.mapping import map_file
from modelc.formats.pickle_machine import load
from modelc.formats.safetensors_header import looks_like_header
from modelc.formats.signature import HEAD_BYTES, ZIP_MAGIC, looks_like
from modelc.formats.state_dict import flatten
from modelc.formats.torch_globals import TensorView
from modelc.formats.zip_archive import Member, content, members_of
from modelc.ir import JSON, Model, Tensor

# Views may share and repeat their storage's bytes without end; real ones hardly do.
MAX_REPETITION = 16
FREE_BYTES = 1 << 26

_PICKLE = "data.pkl"
_CONVERT = "load it with torch and save it again, or convert it to Safetensors"
_HINT = "the file is damaged or not complete: download it again"

Found: TypeAlias = tuple[dict[str, JSON], list[Tensor]]


def read(path: str | PathLike[str]) -> Model:
    """Reads a checkpoint; of a sharded one, the index or any shard may be named, and all are read.

    Args:
        path: A `.pt`, `.pth`, `.bin` or `.bin.index.json` file.

    Returns:
        The model. Metadata has the plain values beside the checkpoint's state dictionary, and what stands beside the
        file under `config`, `tokenizer` and the other keys of `checkpoint.SIDECARS`.

    Raises:
        NotFoundError: The file, or a shard, does not exist.
        BadFileError: Damaged, truncated or hostile content.
        UnsupportedError: The form before torch 1.6, objects other than tensors, an element type modelc does not read.
    """
    path = Path(path)
    index = index_of(path)
    if index is not None:
        metadata, found = read_shards(index, lambda shard: _read_file(map_file(shard), shard))
        path, tensors = index.with_name(index.name.removesuffix(INDEX_SUFFIX)), list(found.values())
        return model_of(path, "pytorch", {**metadata, **read_sidecars(path.parent)}, tensors)
    data = map_file(path)
    metadata, tensors = _read_file(data, path)
    is_torch = data[: len(ZIP_MAGIC)] == ZIP_MAGIC and _pickles(members_of(data, path))
    source_format = "pytorch" if is_torch else "safetensors"
    return model_of(path, source_format, {**metadata, **read_sidecars(path.parent)}, tensors)


def _read_file(data: mmap, path: Path) -> Found:
    head = data[:HEAD_BYTES]
    if not head.startswith(ZIP_MAGIC):
        if looks_like_header(data):
            return safetensors.read_mapped(memoryview(data), path)
        if head.startswith(b"\x80"):
            raise UnsupportedError("a pickle, as torch wrote it before version 1.6", path=path, hint=_CONVERT)
        hint = "name the format with -f, or download the file again"
        raise BadFileError(
            "not a PyTorch file", path=path, offset=0, expected="a zip archive", got=looks_like(head), hint=hint
        )
    members = members_of(data, path)
    pickles = _pickles(members)
    if len(pickles) > 1:
        raise BadFileError("several checkpoints in one archive", path=path, expected=f"one {_PICKLE}", got=pickles)
    if pickles:
        return _read_checkpoint(data, members, pickles[0], path)
    names = [name for name in sorted(members) if name.endswith(".safetensors")]
    if not names:
        raise BadFileError(
            "no weights in this zip archive",
            path=path,
            expected=f"{_PICKLE} or a Safetensors file",
            got=sorted(members),
        )
    return _read_safetensors(data, [members[name] for name in names], path)


def _pickles(members: dict[str, Member]) -> list[str]:
    return [name for name in members if name == _PICKLE or (name.endswith(f"/{_PICKLE}") and name.count("/") == 1)]


def _read_safetensors(data: mmap, members: list[Member], path: Path) -> Found:
    metadata: dict[str, JSON] = {}
    tensors: dict[str, Tensor] = {}
    for member in members:
        of_member, found = safetensors.read_mapped(_bytes_of(data, member, path), path)
        metadata = {**of_member, **metadata}
        for tensor in found:
            if tensor.name in tensors:
                raise BadFileError("a tensor is in two files of the archive", path=path, tensor=tensor.name)
            tensors[tensor.name] = tensor
    return metadata, list(tensors.values())


def _read_checkpoint(data: mmap, members: dict[str, Member], pickle: str, path: Path) -> Found:
    prefix = pickle.removesuffix(_PICKLE)
    order = members.get(f"{prefix}byteorder")
    if order is not None and content(data, order, path).strip() != b"little":
        raise UnsupportedError("a big-endian checkpoint", path=path, expected="little-endian", hint=_CONVERT)
    metadata, views = flatten(load(content(data, members[pickle], path), path), path)
    most = len(data) * MAX_REPETITION + FREE_BYTES
    total = sum(view.dtype.nbytes(view.shape) for view in views.values())
    if total > most:
        expected = f"at most {most} bytes"
        raise BadFileError("the tensors repeat their bytes too often", path=path, expected=expected, got=total)
    storages: dict[str, memoryview] = {}
    tensors = []
    for name, view in views.items():
        if view.key not in storages:
            member = members.get(f"{prefix}data/{view.key}")
            if member is None:
                expected = f"{prefix}data/{view.key} in the archive"
                raise BadFileError(
                    "a tensor's storage is missing", path=path, tensor=name, expected=expected, hint=_HINT
                )
            storages[view.key] = _bytes_of(data, member, path)
        stored = _stored(name, view, np.frombuffer(storages[view.key], np.uint8), path)
        tensors.append(Tensor(name, view.dtype, view.shape, stored))
    return metadata, tensors


def _bytes_of(data: mmap, member: Member, path: Path) -> memoryview:
    if member.stored:
        return memoryview(data)[member.begin : member.begin + member.n_bytes]
    return memoryview(content(data, member, path))


def _stored(name: str, view: TensorView, storage: npt.NDArray[np.uint8], path: Path) -> npt.NDArray[np.uint8]:
    """The elements of `view` one after the other, uint8 (n_bytes,), read-only."""
    if 0 in view.shape:
        return storage[:0]
    item_bytes = view.dtype.block_bytes
    end = view.offset + 1 + sum((dim - 1) * stride for dim, stride in zip(view.shape, view.strides, strict=True))
    if end * item_bytes > storage.nbytes:
        expected, got = f"at most {storage.nbytes} bytes", f"{end * item_bytes} bytes"
        raise BadFileError(
            "a tensor runs past the end of its storage", path=path, tensor=name, expected=expected, got=got, hint=_HINT
        )
    begin = view.offset * item_bytes
    if _is_contiguous(view):
        return storage[begin : begin + prod(view.shape) * item_bytes]
    elements = storage[begin : end * item_bytes].view(f"<u{item_bytes}")
    strides = [stride * item_bytes for stride in view.strides]
    strided = np.lib.stride_tricks.as_strided(elements, view.shape, strides, writeable=False)
    stored = np.ascontiguousarray(strided).reshape(-1).view(np.uint8)
    stored.flags.writeable = False
    return stored


def _is_contiguous(view: TensorView) -> bool:
    step = 1
    for dim, stride in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if dim != 1 and stride != step:
            return False
        step *= dim
    return True
