"""What a linked ELF file says about itself. Source: System V ABI, generic and gABI chapters 4 and 5, 64-bit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from struct import Struct

_HEADER = Struct("<16sHHIQQQIHHHHHH")
_SECTION = Struct("<IIQQQQIIQQ")
_SEGMENT = Struct("<IIQQQQQQ")
_SYMBOL = Struct("<IBBHQQ")
_DYNAMIC = Struct("<QQ")
_NEEDED_FILE = Struct("<HHIII")  # of whose versions something is needed
_NEEDED_VERSION = Struct("<IHHII")
_DYNAMIC_SYMBOLS = 11  # type of the section
_UNDEFINED = 0  # section index of what others must define
_LOADED, _DYNAMIC_SEGMENT = 1, 2  # types of segments
_NEEDED, _TEXTS, _SONAME, _NEEDED_VERSIONS = 1, 5, 14, 0x6FFFFFFE  # kinds of dynamic entries
_SECTIONS_AT, _SECTION_COUNT_AT = 40, 60  # fields of the header
_GLIBC = re.compile(r"GLIBC_2\.(\d+)(\.\d+)?")
_GLIBC_FEATURES = {"GLIBC_ABI_DT_RELR": 36}  # names of versions that are no numbers


def undefined_symbols(library: bytes) -> set[str]:
    """Names that whoever loads the library must have."""
    return {name for name, section in _symbols(library) if section == _UNDEFINED and name}


def defined_symbols(library: bytes) -> set[str]:
    """Names that the library gives to others."""
    return {name for name, section in _symbols(library) if section != _UNDEFINED and name}


def needed_libraries(library: bytes) -> list[str]:
    """Names of the libraries that must be loaded with it."""
    entries, text = _dynamic(library)
    return [_name(library, text + value) for kind, value in entries if kind == _NEEDED]


def soname(library: bytes) -> str | None:
    """What the library calls itself."""
    entries, text = _dynamic(library)
    return next((_name(library, text + value) for kind, value in entries if kind == _SONAME), None)


def glibc_minor(library: bytes) -> int:
    """The least minor version of glibc 2 that has everything which the library or program asks for; 0 for any."""
    minors = [0]
    for name in _needed_versions(library):
        found = _GLIBC.fullmatch(name)
        minors.append(int(found[1]) if found else _GLIBC_FEATURES.get(name, 0))
    return max(minors)


def without_sections(library: bytes) -> bytes:
    """A library or program without what only linkers and debuggers read: symbols of its own, debug information."""
    header = _HEADER.unpack_from(library)
    end = max((offset + length for kind, offset, _, length in _segments(library) if kind == _LOADED), default=0)
    if end < header[5] + header[9] * header[10]:
        return library  # the table of segments stands behind them
    made = bytearray(library[:end])
    made[_SECTIONS_AT : _SECTIONS_AT + 8] = bytes(8)
    made[_SECTION_COUNT_AT : _SECTION_COUNT_AT + 4] = bytes(4)  # and the index of their names
    return bytes(made)


def _segments(library: bytes) -> list[tuple[int, int, int, int]]:
    """Of each segment its type, its place in the file, its address and its length in the file."""
    header = _HEADER.unpack_from(library)
    start, size, count = header[5], header[9], header[10]
    rows = [_SEGMENT.unpack_from(library, start + number * size) for number in range(count)]
    return [(row[0], row[2], row[3], row[5]) for row in rows]


def _dynamic(library: bytes) -> tuple[list[tuple[int, int]], int]:
    """The dynamic entries, and where the texts are that they refer to."""
    entries = []
    for kind, offset, _, length in _segments(library):
        if kind == _DYNAMIC_SEGMENT:
            entries = [_DYNAMIC.unpack_from(library, at) for at in range(offset, offset + length, _DYNAMIC.size)]
    texts = [_place(library, value) for kind, value in entries if kind == _TEXTS]
    return entries, texts[0] if texts else 0


def _place(library: bytes, address: int) -> int:
    """Where the byte is in the file that is loaded at an address."""
    for kind, offset, start, length in _segments(library):
        if kind == _LOADED and start <= address < start + length:
            return offset + address - start
    raise ValueError(f"nothing is loaded at {address:#x}")


def _needed_versions(library: bytes) -> Iterator[str]:
    entries, text = _dynamic(library)
    for kind, address in entries:
        if kind != _NEEDED_VERSIONS:
            continue
        at, following = _place(library, address), 1
        while following:
            _, count, _, first, following = _NEEDED_FILE.unpack_from(library, at)
            version_at = at + first
            for _ in range(count):
                *_, name, next_version = _NEEDED_VERSION.unpack_from(library, version_at)
                yield _name(library, text + name)
                version_at += next_version
            at += following


def _symbols(library: bytes) -> list[tuple[str, int]]:
    header = _HEADER.unpack_from(library)
    start, size, count = header[6], header[11], header[12]
    sections = [_SECTION.unpack_from(library, start + number * size) for number in range(count)]
    found = []
    for _, kind, _, _, offset, length, linked, *_ in sections:
        if kind == _DYNAMIC_SYMBOLS:
            for at in range(offset, offset + length, _SYMBOL.size):
                symbol = _SYMBOL.unpack_from(library, at)
                found.append((_name(library, sections[linked][4] + symbol[0]), symbol[3]))
    return found


def _name(library: bytes, at: int) -> str:
    return library[at : library.index(b"\0", at)].decode()
