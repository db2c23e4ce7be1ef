"""Compressed tensors: one zstd frame each, which says how many bytes it holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import zstandard

from modelc.formats.modelc.header import Entry, damaged

# Quantized weights shrink by 6 % at every level from 1 to 12, so the fastest will do.
LEVEL = 1
# Frames of levels up to 19 need no more; what asks for more is no file of modelc's.
MAX_WINDOW_BYTES = 1 << 23
CHUNK_BYTES = 1 << 20

_HEADER_BYTES = 18  # the longest frame header


def compress(stored: memoryview) -> bytes:
    """A frame with the bytes of `stored`; the same bytes give the same frame."""
    return zstandard.ZstdCompressor(LEVEL).compress(stored)


def check_size(frame: memoryview, entry: Entry, path: Path) -> None:
    """Checks that `frame` holds as many bytes as the shape of `entry` needs, before memory for them is asked for."""
    with _errors(entry, path):
        size = zstandard.frame_content_size(bytes(frame[:_HEADER_BYTES]))
    if size != entry.stored_bytes:
        raise damaged("a wrong length after decompression", path, entry.stored_bytes, size, tensor=entry.name)


def decompress(frame: memoryview, entry: Entry, out: npt.NDArray[np.uint8], path: Path) -> None:
    """Fills `out`, uint8 (entry.stored_bytes,), and writes nowhere else, whatever the frame says."""
    with _errors(entry, path), _reader(frame) as reader:
        room = out.data
        while room:
            n_bytes = reader.readinto(room[:CHUNK_BYTES])
            if n_bytes == 0:
                break
            room = room[n_bytes:]
        if room or reader.read(1):
            raise damaged("a wrong length after decompression", path, entry.stored_bytes, "another", tensor=entry.name)


def chunks(frame: memoryview, entry: Entry, path: Path) -> Iterator[bytes]:
    """The decompressed bytes, a bounded number at a time."""
    with _errors(entry, path), _reader(frame) as reader:
        while chunk := reader.read(CHUNK_BYTES):
            yield chunk


def _reader(frame: memoryview) -> zstandard.ZstdDecompressionReader:
    return zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).stream_reader(frame)


@contextmanager
def _errors(entry: Entry, path: Path) -> Iterator[None]:
    try:
        yield
    except zstandard.ZstdError as error:
        raise damaged("a tensor cannot be decompressed", path, "a zstd frame", error, tensor=entry.name) from None
