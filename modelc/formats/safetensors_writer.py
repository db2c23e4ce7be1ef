"""Writes Safetensors files; block types, which the format lacks, as floats.

Source: the Safetensors format, version of 2023 (a u64 length, JSON, tensor data).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from modelc.dtypes import DType
from modelc.errors import BadFileError, BadInputError, UnsupportedError
from modelc.formats.atomic import atomic_write
from modelc.formats.mapped_pages import release_pages
from modelc.formats.progress import Progress
from modelc.formats.safetensors_header import JSON_KEYS
from modelc.ir import Model, Tensor, verify
from modelc.layout import LANES, dequantize, float_rows, plain_bytes, quantize

ALIGNMENT = 8  # of the data
MAX_HEADER_BYTES = 100_000_000
CHUNK_BYTES = 16 << 20  # of float32 values at a time


def write(model: Model, path: str | PathLike[str], floats: DType, progress: Progress | None = None) -> None:
    """Writes `model` to a Safetensors file under its own names; `path` never stands for half of it.

    Metadata go to `__metadata__`: strings as they are, everything else as JSON, which the reader makes values of again.

    Args:
        model: Tensors in either layout.
        path: The file to create or replace, in an existing folder.
        floats: What block types become: f32, f16 or bf16. Other types stay.
        progress: Called as `progress(done_bytes, total_bytes, label)` after each tensor.

    Raises:
        BadFileError: The model breaks a rule of the IR, or has a value that `floats` cannot hold.
        BadInputError: `path` cannot be a file.
        UnsupportedError: The header would be longer than the format allows.
        WriteError: The system refuses to write, for example because the disk is full.
    """
    verify(model)
    header: dict[str, Any] = {"__metadata__": _metadata(model)}
    done, total = 0, 0
    for tensor in model.tensors.values():
        dtype = floats if tensor.dtype.is_block else tensor.dtype
        end = total + dtype.nbytes(tensor.shape)
        header[tensor.name] = {
            "dtype": dtype.name.upper(),
            "shape": list(tensor.shape),
            "data_offsets": [total, end],
        }
        total = end
    # What was no UTF-8 in the source becomes a JSON escape.
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "backslashreplace")
    text = text.ljust(-(-len(text) // ALIGNMENT) * ALIGNMENT)
    if len(text) > MAX_HEADER_BYTES:
        raise UnsupportedError(
            "too much metadata for a Safetensors file", path=path, expected=f"{MAX_HEADER_BYTES} bytes", got=len(text)
        )
    with atomic_write(Path(path)) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for tensor in model.tensors.values():
            for chunk in _content(tensor, floats):
                file.write(chunk.data)
                done += chunk.size
            release_pages(tensor.stored)
            if progress:
                progress(done, total, "exporting")


def _metadata(model: Model) -> dict[str, str]:
    named = {"general.name": model.name, "general.architecture": model.architecture, **model.metadata}
    named.pop(JSON_KEYS, None)
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in named.items()}
    as_json = [key for key, value in named.items() if not isinstance(value, str)]
    return {"format": "pt", **texts, **({JSON_KEYS: json.dumps(as_json)} if as_json else {})}


def _content(tensor: Tensor, floats: DType) -> Iterator[npt.NDArray[np.uint8]]:
    if not tensor.dtype.is_block:
        yield plain_bytes(tensor)
        return
    if len(tensor.shape) != 2:
        values = dequantize(tensor.dtype, tensor.stored, tensor.shape)
        yield _stored(tensor, values, floats)
        return
    rows, cols = tensor.shape
    step = max(CHUNK_BYTES // (4 * max(cols, 1) * LANES), 1) * LANES
    for start in range(0, rows, step):
        values = float_rows(tensor, start, min(start + step, rows))
        yield _stored(tensor, values, floats)


def _stored(tensor: Tensor, values: npt.NDArray[np.float32], floats: DType) -> npt.NDArray[np.uint8]:
    try:
        return quantize(floats, values, values.shape)
    except BadInputError as error:
        raise BadFileError(
            error.what, tensor=tensor.name, got=error.got, expected=error.expected, hint="export floats as f32"
        ) from None
