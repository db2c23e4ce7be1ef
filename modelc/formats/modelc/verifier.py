"""Checks every byte of a `.modelc` file: a single flipped bit is found, and its tensor named where it is in one."""

from __future__ import annotations

from hashlib import blake2b
from mmap import mmap
from os import PathLike
from pathlib import Path

from modelc.formats.modelc.compiled import map_packed
from modelc.formats.modelc.header import CHECKSUM_BYTES, PREFIX_BYTES, Entry, Header, checksum, damaged, data_start
from modelc.formats.modelc.pool import ordered_map
from modelc.formats.modelc.reader import open_header
from modelc.formats.progress import Progress


def verify(path: str | PathLike[str], progress: Progress | None = None) -> Header:
    """Checks header, sizes, bounds, padding, and the checksum of every tensor.

    Args:
        path: A `.modelc` file, or a compiled file, whose weights are checked.
        progress: Called as `progress(done_bytes, total_bytes, label)` after each tensor.

    Returns:
        The header of the file, which is whole.

    Raises:
        NotFoundError: No such file.
        BadFileError: The first difference from what was written, with the tensor's name where it is in one.
        UnsupportedError: A version that this modelc does not know.
    """
    path = Path(path)
    data = map_packed(path)
    header, text_bytes = open_header(data, path)
    start = data_start(text_bytes)
    _check_zeros(data, PREFIX_BYTES + text_bytes, start, path)
    end = start
    for entry in header.entries:
        _check_zeros(data, end, start + entry.offset, path, entry)
        end = start + entry.offset + entry.length

    def check(entry: Entry) -> int:
        _check_tensor(memoryview(data)[start + entry.offset :][: entry.length], entry, path)
        return entry.length

    total = sum(entry.length for entry in header.entries)
    done = 0
    for length in ordered_map(check, header.entries):
        done += length
        if progress:
            progress(done, total, "verifying")
    return header


def _check_zeros(data: mmap, start: int, end: int, path: Path, before: Entry | None = None) -> None:
    """The padding in bytes `start` to `end`, which is shorter than a page, has nothing in it."""
    padding = data[start:end]
    if padding.strip(b"\0"):
        offset = start + len(padding) - len(padding.lstrip(b"\0"))
        what = f"the padding before tensor '{before.name}' is damaged" if before else "the padding is damaged"
        raise damaged(what, path, "zero", f"byte {data[offset]}", offset=offset)


def _check_tensor(content: memoryview, entry: Entry, path: Path) -> None:
    stored = checksum(content)
    if entry.packed_checksum is not None:
        from modelc.formats.modelc import frames  # late: a plain file needs no zstd

        if stored != entry.packed_checksum:
            raise _wrong_checksum(stored, entry.packed_checksum, entry, path)
        frames.check_size(content, entry, path)
        digest = blake2b(digest_size=CHECKSUM_BYTES)
        for chunk in frames.chunks(content, entry, path):
            digest.update(chunk)
        stored = digest.hexdigest()
    if stored != entry.checksum:
        raise _wrong_checksum(stored, entry.checksum, entry, path)


def _wrong_checksum(got: str, expected: str, entry: Entry, path: Path) -> Exception:
    return damaged("a tensor's bytes are damaged", path, f"BLAKE2b {expected[:16]}…", f"{got[:16]}…", tensor=entry.name)
