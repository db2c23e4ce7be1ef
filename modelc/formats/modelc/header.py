"""How a `.modelc` file begins, and where its tensors are.

Format versions 1 (plain) and 2 (zstd, tensor by tensor). All numbers are little-endian:

      0   8  magic: "MODELC", 1A, 0A
      8   4  format version
     12   4  zero
     16   8  length of the JSON header
     24   8  length of the file
     32  32  BLAKE2b-256 of bytes 0 to 31 and the JSON header
     64   …  JSON header; zeros to the next multiple of 4096, where the tensor data start
             tensors in ascending order of their names, each at a multiple of 64, zeros between, none after the last

Checksums of tensors are BLAKE2b-256 of the stored bytes, before compression; with zstd a second one is of the bytes in
the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from math import prod
from mmap import mmap
from pathlib import Path
from struct import Struct

from modelc.dtypes import DType
from modelc.errors import BadFileError, UnsupportedError
from modelc.formats.signature import HEAD_BYTES, MODELC_MAGIC, looks_like
from modelc.ir import JSON
from modelc.layout import is_lanes, lanes_nbytes

COMPRESSIONS = {1: "none", 2: "zstd"}  # by format version
TENSOR_ALIGNMENT = 64  # a cache line, and the widest vector
DATA_ALIGNMENT = 4096  # a page
PREFIX_BYTES = 64
CHECKSUM_BYTES = 32
MAX_HEADER_BYTES = 1 << 27

_HASHED = Struct("<8sIIQQ")  # the prefix without its checksum
_DAMAGED = "the file is damaged or not complete: pack or download it again"


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the tensor table.

    Attributes:
        name: The source's name.
        dtype: Element or block type.
        shape: Logical shape, outermost dimension first.
        layout: `lanes` for what kernels read in place, otherwise `plain`.
        offset: Where the bytes begin, counted from the start of the tensor data.
        length: Number of bytes in the file.
        checksum: BLAKE2b-256 of the stored bytes, hexadecimal.
        packed_checksum: BLAKE2b-256 of the bytes in the file, where they are compressed; otherwise None.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    layout: str
    offset: int
    length: int
    checksum: str
    packed_checksum: str | None

    @property
    def stored_bytes(self) -> int:
        """Size in bytes in `layout`, before compression."""
        return stored_bytes(self.dtype, self.shape)


@dataclass(frozen=True, slots=True)
class Header:
    """All that a `.modelc` file says about itself; known without touching a tensor.

    Attributes:
        name: The model's name.
        architecture: `llama`, `gpt2`, …
        source_format: The format that the model was first read from.
        format_version: 1 plain, 2 zstd.
        metadata: The source's keys as they are.
        entries: The tensor table, in ascending order of the names.
    """

    name: str
    architecture: str
    source_format: str
    format_version: int
    metadata: dict[str, JSON]
    entries: tuple[Entry, ...]

    @property
    def compression(self) -> str:
        """`none` or `zstd`."""
        return COMPRESSIONS[self.format_version]

    @property
    def total_params(self) -> int:
        """Number of logical elements in all tensors."""
        return sum(prod(entry.shape) for entry in self.entries)

    @property
    def total_bytes(self) -> int:
        """Size in bytes of all tensors in the source's own layout."""
        return sum(entry.dtype.nbytes(entry.shape) for entry in self.entries)


def align(offset: int, alignment: int) -> int:
    """The first multiple of `alignment` that is not below `offset`."""
    return -(-offset // alignment) * alignment


def data_start(header_bytes: int) -> int:
    """Offset in the file of the tensor data, behind a JSON header of that length."""
    return align(PREFIX_BYTES + header_bytes, DATA_ALIGNMENT)


def layout_of(dtype: DType, shape: tuple[int, ...]) -> str:
    """The layout in which `.modelc` files keep such a tensor."""
    return "lanes" if is_lanes(dtype, shape) else "plain"


def stored_bytes(dtype: DType, shape: tuple[int, ...]) -> int:
    """Size in bytes of such a tensor in that layout."""
    return lanes_nbytes(dtype, *shape) if is_lanes(dtype, shape) else dtype.nbytes(shape)


def encode_prefix(format_version: int, text: bytes, file_bytes: int) -> bytes:
    """The first `PREFIX_BYTES` bytes of a file with the JSON header `text`."""
    hashed = _HASHED.pack(MODELC_MAGIC, format_version, 0, len(text), file_bytes)
    return hashed + _header_checksum(hashed, text)


def decode_prefix(data: mmap, path: Path) -> tuple[int, bytes]:
    """Checks how a file begins: magic, version, lengths, and the header's checksum.

    Args:
        data: The whole file.
        path: Its path, for messages.

    Returns:
        The format version, and the JSON header as bytes.

    Raises:
        BadFileError: Not a `.modelc` file, or a damaged or truncated one.
        UnsupportedError: A version that this modelc does not know.
    """
    if data[: len(MODELC_MAGIC)] != MODELC_MAGIC:
        got = looks_like(data[:HEAD_BYTES])
        hint = "make one of it with `modelc pack`, with -f where its name is wrong, or get the file again"
        raise BadFileError("not a .modelc file", path=path, offset=0, expected="MODELC", got=got, hint=hint)
    if len(data) < PREFIX_BYTES:
        raise damaged("the file ends inside its prefix", path, f"{PREFIX_BYTES} bytes", f"{len(data)} bytes")
    _, version, reserved, header_bytes, file_bytes = _HASHED.unpack_from(data, 0)
    if version not in COMPRESSIONS:
        hint = "look for a newer modelc, or pack the model again"
        raise UnsupportedError(
            ".modelc version not supported", path=path, offset=8, expected="1 or 2", got=version, hint=hint
        )
    room = min(MAX_HEADER_BYTES, len(data) - PREFIX_BYTES)
    if header_bytes > room:
        raise damaged("the header is too long", path, f"at most {room} bytes", f"{header_bytes} bytes", offset=16)
    text = data[PREFIX_BYTES : PREFIX_BYTES + header_bytes]
    if reserved or data[_HASHED.size : PREFIX_BYTES] != _header_checksum(data[: _HASHED.size], text):
        raise damaged("the header's checksum is wrong", path, "the bytes as written", "other bytes", offset=0)
    if file_bytes != len(data):
        raise damaged("the file has another length than it was written with", path, file_bytes, len(data), offset=24)
    return version, text


def checksum(content: bytes | memoryview) -> str:
    """BLAKE2b-256 of a tensor's bytes, hexadecimal."""
    return blake2b(content, digest_size=CHECKSUM_BYTES).hexdigest()


def damaged(
    what: str, path: Path, expected: object, got: object, *, offset: int | None = None, tensor: str | None = None
) -> BadFileError:
    """The error for content that no writer of modelc makes, to be raised by the caller."""
    return BadFileError(what, path=path, offset=offset, tensor=tensor, expected=expected, got=got, hint=_DAMAGED)


def _header_checksum(hashed: bytes, text: bytes) -> bytes:
    digest = blake2b(hashed, digest_size=CHECKSUM_BYTES)
    digest.update(text)
    return digest.digest()
