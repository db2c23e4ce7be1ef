"""Reads `.modelc` files: a plain one is used in place, a compressed one is unpacked into memory.

Prefix, header, sizes and bounds are checked, which takes no time; the checksums of the tensors are left to `verify`.
"""

from __future__ import annotations

from mmap import mmap
from os import PathLike
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from modelc.errors import UnsupportedError
from modelc.formats.modelc import header_json
from modelc.formats.modelc.compiled import map_packed
from modelc.formats.modelc.header import (
    TENSOR_ALIGNMENT,
    Entry,
    Header,
    align,
    damaged,
    data_start,
    decode_prefix,
)
from modelc.formats.modelc.pool import ordered_map
from modelc.ir import Model, Tensor, verify
from modelc.memory_limit import memory_limit

Bytes: TypeAlias = npt.NDArray[np.uint8]


def read(path: str | PathLike[str]) -> Model:
    """Reads a `.modelc` file.

    Args:
        path: The file, or a compiled file that holds it.

    Returns:
        The model. Tensors begin at multiples of 64 in memory and are read-only: views of the mapped file where it is
        not compressed. Those for which `layout.is_lanes` is true are stored in kernel layout.

    Raises:
        NotFoundError: No such file.
        BadFileError: Damaged, truncated or hostile content.
        UnsupportedError: A version that this modelc does not know, or a compressed model larger than the memory.
    """
    path = Path(path)
    data = map_packed(path)
    header, text_bytes = open_header(data, path)
    start = data_start(text_bytes)
    if header.compression == "none":
        in_file = np.frombuffer(data, np.uint8)
        places = [(start + entry.offset) for entry in header.entries]
    else:
        in_file, places = _decompress(data, start, header, path)
    tensors = {}
    for entry, place in zip(header.entries, places, strict=True):
        stored = in_file[place : place + entry.stored_bytes]
        tensors[entry.name] = Tensor(entry.name, entry.dtype, entry.shape, stored, entry.layout)
    model = Model(header.name, header.architecture, header.source_format, header.metadata, tensors)
    verify(model, path)
    return model


def read_header(path: str | PathLike[str]) -> Header:
    """What a `.modelc` file says about itself, without its tensors.

    Raises:
        NotFoundError: No such file.
        BadFileError: Damaged, truncated or hostile content.
        UnsupportedError: A version that this modelc does not know.
    """
    return open_header(map_packed(Path(path)), Path(path))[0]


def open_header(data: mmap, path: Path) -> tuple[Header, int]:
    """The header of a mapped file, all its entries inside the file, and the length of its JSON text."""
    version, text = decode_prefix(data, path)
    header = header_json.decode(text, version, path)
    start = data_start(len(text))
    end = start + (header.entries[-1].offset + header.entries[-1].length if header.entries else 0)
    if end != len(data):
        raise damaged("the tensor table does not fit the file", path, f"{end} bytes", f"{len(data)} bytes")
    return header, len(text)


def _decompress(data: mmap, start: int, header: Header, path: Path) -> tuple[Bytes, list[int]]:
    """The tensors of a compressed file in one read-only array, and where in it each begins."""
    from modelc.formats.modelc import frames  # late: a plain file needs no zstd

    places = []
    end = 0
    for entry in header.entries:
        places.append(align(end, TENSOR_ALIGNMENT))
        end = places[-1] + entry.stored_bytes
    limit = memory_limit()
    if end > limit:
        # A run of zeros shrinks ten-thousandfold, so the size of the file is no bound.
        hint = "pack it without compression: a plain file is used in place"
        expected = f"at most {limit} bytes"
        raise UnsupportedError(
            "the model is larger than the memory", path=path, expected=expected, got=f"{end} bytes", hint=hint
        )
    view = memoryview(data)
    found = [view[start + entry.offset :][: entry.length] for entry in header.entries]
    for entry, frame in zip(header.entries, found, strict=True):
        frames.check_size(frame, entry, path)
    # An anonymous mapping begins at a page, and takes memory only where something is written.
    memory = np.frombuffer(mmap(-1, max(end, 1)), np.uint8)

    def decompress(work: tuple[Entry, memoryview, int]) -> None:
        entry, frame, place = work
        frames.decompress(frame, entry, memory[place : place + entry.stored_bytes], path)

    for _ in ordered_map(decompress, zip(header.entries, found, places, strict=True)):
        pass
    memory.flags.writeable = False
    return memory, places
