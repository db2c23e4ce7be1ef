"""Writes GGUF files, version 3: metadata, tensors in their own types, the source's names.

Source: ggml's GGUF specification; `gguf` reads what this writes.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from struct import pack

import numpy as np

from modelc.dtypes import DTYPES, DType
from modelc.errors import UnsupportedError
from modelc.formats.atomic import atomic_write
from modelc.formats.gguf_encoding import encode_key, encode_string
from modelc.formats.mapped_pages import release_pages
from modelc.formats.progress import Progress
from modelc.formats.signature import GGUF_MAGIC
from modelc.ir import JSON, Model, Tensor, verify
from modelc.layout import float_rows, is_float, plain_bytes, quantize

VERSION = 3
ALIGNMENT = 32
MAX_DIMS = 4
MAX_NAME_BYTES = 63  # llama.cpp keeps names in 64 bytes

_ARCHITECTURE = "general.architecture"
_ALIGNMENT_KEY = "general.alignment"


def write(model: Model, path: str | PathLike[str], progress: Progress | None = None) -> None:
    """Writes `model` to a GGUF file; `path` never stands for half of it.

    Types that GGUF lacks become the smallest one that holds their values: 8-bit floats f16, truth values and unsigned
    bytes i16.

    Args:
        model: Tensors in either layout, with the names that readers of the file expect.
        path: The file to create or replace, in an existing folder.
        progress: Called as `progress(done_bytes, total_bytes, label)` after each tensor.

    Raises:
        BadFileError: The model breaks a rule of the IR.
        BadInputError: `path` cannot be a file.
        UnsupportedError: GGUF cannot hold a name, shape or metadata value.
        WriteError: The system refuses to write, for example because the disk is full.
    """
    verify(model)
    metadata: dict[str, JSON] = {_ARCHITECTURE: model.architecture, **model.metadata}
    metadata.pop(_ALIGNMENT_KEY, None)  # the default, 32, from here on
    rows, sizes, end = [], [], 0
    for tensor in model.tensors.values():
        dtype = _dtype_of(tensor)
        rows.append(_row(tensor, dtype, end))
        sizes.append(dtype.nbytes(tensor.shape))
        end = _aligned(end + sizes[-1])
    head = GGUF_MAGIC + pack("<IQQ", VERSION, len(rows), len(metadata))
    head += b"".join(encode_key(key, value) for key, value in metadata.items()) + b"".join(rows)
    with atomic_write(Path(path)) as file:
        file.write(head.ljust(_aligned(len(head)), b"\0"))
        done, total = 0, sum(sizes)
        for tensor, size in zip(model.tensors.values(), sizes, strict=True):
            file.write(_content(tensor).data)
            release_pages(tensor.stored)
            file.write(bytes(_aligned(size) - size))
            done += size
            if progress:
                progress(done, total, "exporting")


def _dtype_of(tensor: Tensor) -> DType:
    if tensor.dtype.ggml_id is not None:
        return tensor.dtype
    return DTYPES["f16" if is_float(tensor.dtype) else "i16"]


def _content(tensor: Tensor) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    dtype = _dtype_of(tensor)
    if dtype == tensor.dtype:
        return plain_bytes(tensor)
    if is_float(tensor.dtype):
        flat = Tensor(tensor.name, tensor.dtype, (1, tensor.n_elements), tensor.stored)
        return quantize(dtype, float_rows(flat, 0, 1), tensor.shape)
    return tensor.stored.astype("<i2").view(np.uint8)


def _row(tensor: Tensor, dtype: DType, offset: int) -> bytes:
    name = encode_string(tensor.name)
    shape = tensor.shape or (1,)
    if len(name) - 8 > MAX_NAME_BYTES:
        raise UnsupportedError("too long a name for GGUF", tensor=tensor.name, expected=f"{MAX_NAME_BYTES} bytes")
    if len(shape) > MAX_DIMS:
        got = f"{len(shape)} dimensions"
        raise UnsupportedError("too many dimensions for GGUF", tensor=tensor.name, expected=f"{MAX_DIMS}", got=got)
    return name + pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), dtype.ggml_id, offset)


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT
