"""The members of a zip archive, as views of the mapped file.

Source: PKWARE's APPNOTE 6.3 (end of central directory, its 64-bit form, central and local headers).
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path
from struct import Struct

from modelc.errors import BadFileError, UnsupportedError
from modelc.formats.signature import HEAD_BYTES, ZIP_MAGIC, looks_like

MAX_MEMBERS = 1 << 18
# Weights shrink to a tenth at most; what grows more than this is a bomb, or better unpacked by its owner.
MAX_GROWTH = 20
FREE_GROWTH_BYTES = 1 << 20

_STORED, _DEFLATED = 0, 8
_ENCRYPTED = 1
_SENTINEL_16, _SENTINEL_32 = 0xFFFF, 0xFFFFFFFF
_ZIP64_EXTRA = 1

_END = Struct("<4s4H2LH")
_END_MAGIC = b"PK\x05\x06"
_LOCATOR = Struct("<4sLQL")
_LOCATOR_MAGIC = b"PK\x06\x07"
_END_64 = Struct("<4sQ2H2L4Q")
_END_64_MAGIC = b"PK\x06\x06"
_CENTRAL = Struct("<4s6H3L5H2L")
_CENTRAL_MAGIC = b"PK\x01\x02"
_LOCAL = Struct("<4s5H3L2H")

_HINT = "the file is damaged or not complete: download it again"


@dataclass(frozen=True, slots=True)
class Member:
    """A file in the archive; its bytes in the archive are `begin` to `begin + packed_bytes`."""

    name: str
    begin: int
    packed_bytes: int
    n_bytes: int
    crc: int
    stored: bool


def members_of(data: mmap, path: Path) -> dict[str, Member]:
    """The members by name; all inside the archive, no two of them sharing a byte.

    Raises:
        BadFileError: Not a zip archive, or a damaged or hostile one.
        UnsupportedError: A member that is encrypted or compressed in another way than by deflate.
    """
    if data[:4] != ZIP_MAGIC:
        got = looks_like(data[:HEAD_BYTES])
        raise BadFileError("not a zip archive", path=path, offset=0, expected="PK", got=got, hint=_HINT)
    n_members, pos, end = _directory(data, path)
    members: dict[str, Member] = {}
    places = []
    for _ in range(n_members):
        if pos + _CENTRAL.size > end:
            raise _wrong("the zip directory ends early", path, pos, f"{n_members} members", len(members))
        member, local, pos = _member(data, pos, end, path)
        if member.name in members:
            raise _wrong("two zip members have the same name", path, pos, "different names", repr(member.name))
        members[member.name] = member
        places.append((local, member.begin + member.packed_bytes, member.name))
    free = 0
    for begin, stop, name in sorted(places):
        if begin < free:
            raise _wrong("zip members overlap", path, begin, f"offset {free} or more", repr(name))
        free = stop
    return members


def content(data: mmap, member: Member, path: Path) -> bytes:
    """The bytes of a member, decompressed and checked.

    Raises:
        BadFileError: A wrong checksum or length, or a member that grows more than weights do.
    """
    if member.n_bytes > member.packed_bytes * MAX_GROWTH + FREE_GROWTH_BYTES:
        expected = f"at most {member.packed_bytes * MAX_GROWTH + FREE_GROWTH_BYTES} bytes"
        hint = "unpack the archive, if you trust it, and name the file in it"
        raise BadFileError(
            f"zip member '{member.name}' is too large", path=path, expected=expected, got=member.n_bytes, hint=hint
        )
    packed = data[member.begin : member.begin + member.packed_bytes]
    plain = packed if member.stored else _inflate(packed, member, path)
    if len(plain) != member.n_bytes:
        raise _wrong(f"zip member '{member.name}' has a wrong length", path, member.begin, member.n_bytes, len(plain))
    if zlib.crc32(plain) != member.crc:
        raise _wrong(f"zip member '{member.name}' is damaged", path, member.begin, "its checksum", "another")
    return plain


def _inflate(packed: bytes, member: Member, path: Path) -> bytes:
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        # A byte more than it should have shows that there are more.
        return inflater.decompress(packed, member.n_bytes + 1)
    except zlib.error as error:
        raise _wrong(f"zip member '{member.name}' is damaged", path, member.begin, "a deflate stream", error) from None


def _directory(data: mmap, path: Path) -> tuple[int, int, int]:
    """The number of members, and where their directory begins and ends."""
    # The comment behind the end may have its signature too; the end is where the comment's length fits.
    first = max(0, len(data) - _END.size - _SENTINEL_16)
    at = data.rfind(_END_MAGIC, first)
    while at >= 0 and int.from_bytes(data[at + 20 : at + 22], "little") != len(data) - at - _END.size:
        at = data.rfind(_END_MAGIC, first, at)
    if at < 0:
        raise _wrong("the zip archive has no end", path, len(data), "its directory", "the end of the file")
    _, _, _, _, n_members, n_bytes, start, _ = _END.unpack_from(data, at)
    if n_members == _SENTINEL_16 or _SENTINEL_32 in (n_bytes, start):
        locator = at - _LOCATOR.size
        if locator >= 0 and data[locator : locator + 4] == _LOCATOR_MAGIC:
            at = _LOCATOR.unpack_from(data, locator)[2]
            if at + _END_64.size > locator or data[at : at + 4] != _END_64_MAGIC:
                raise _wrong("the zip archive's 64-bit directory is missing", path, locator, "its place", at)
            n_members, n_bytes, start = _END_64.unpack_from(data, at)[7:]
    room = min(MAX_MEMBERS, n_bytes // _CENTRAL.size)
    if start + n_bytes > at:
        raise _wrong("the zip directory runs past its end", path, at, f"at most offset {at}", start + n_bytes)
    if n_members > room:
        raise _wrong("too many zip members", path, at, f"at most {room}", n_members)
    return n_members, start, start + n_bytes


def _member(data: mmap, pos: int, end: int, path: Path) -> tuple[Member, int, int]:
    """A member, where its local header begins, and where the next central header does."""
    fields = _CENTRAL.unpack_from(data, pos)
    magic, _, _, flags, method, _, _, crc, packed_bytes, n_bytes, name_len, extra_len, comment_len = fields[:13]
    local = fields[16]
    name_at = pos + _CENTRAL.size
    after = name_at + name_len + extra_len + comment_len
    if magic != _CENTRAL_MAGIC or after > end:
        raise _wrong("a damaged zip directory", path, pos, "a member", magic.hex(" "))
    name = data[name_at : name_at + name_len].decode("utf-8", "surrogateescape")
    if _SENTINEL_32 in (packed_bytes, n_bytes, local):
        extra = data[name_at + name_len : name_at + name_len + extra_len]
        n_bytes, packed_bytes, local = _wide(extra, (n_bytes, packed_bytes, local), path, pos)
    if flags & _ENCRYPTED:
        raise UnsupportedError(f"zip member '{name}' is encrypted", path=path, hint="unpack the archive first")
    if method not in (_STORED, _DEFLATED):
        what = f"zip member '{name}' is compressed in an unknown way"
        raise UnsupportedError(what, path=path, expected="stored or deflated", got=f"method {method}")
    if local + _LOCAL.size > len(data) or data[local : local + 4] != ZIP_MAGIC:
        raise _wrong("a zip member is not where it should be", path, local, "a local header", repr(name))
    begin = local + _LOCAL.size + sum(_LOCAL.unpack_from(data, local)[-2:])
    if begin + packed_bytes > len(data) or (method == _STORED and packed_bytes != n_bytes):
        expected = f"at most {len(data) - begin} bytes"
        raise _wrong(f"zip member '{name}' has a wrong length", path, local, expected, f"{n_bytes} bytes")
    return Member(name, begin, packed_bytes, n_bytes, crc, method == _STORED), local, after


def _wide(extra: bytes, narrow: tuple[int, ...], path: Path, pos: int) -> list[int]:
    """The values of a member that do not fit 32 bits, from the extra field that has those, in this order."""
    at = 0
    while at + 4 <= len(extra):
        kind, n_bytes = int.from_bytes(extra[at : at + 2], "little"), int.from_bytes(extra[at + 2 : at + 4], "little")
        if kind == _ZIP64_EXTRA:
            field = extra[at + 4 : at + 4 + n_bytes]
            values = iter([int.from_bytes(field[i : i + 8], "little") for i in range(0, len(field) - 7, 8)])
            return [next(values, value) if value == _SENTINEL_32 else value for value in narrow]
        at += 4 + n_bytes
    raise _wrong("a zip member without its 64-bit size", path, pos, "an extra field", "none")


def _wrong(what: str, path: Path, offset: int, expected: object, got: object) -> BadFileError:
    return BadFileError(what, path=path, offset=offset, expected=expected, got=got, hint=_HINT)
