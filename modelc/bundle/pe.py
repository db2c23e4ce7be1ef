"""What a linked Windows library asks of others. Source: Microsoft's PE format, 64-bit."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct, unpack_from

_HEADER_AT = 0x3C  # where the file says where the PE header begins
_FILE_HEADER = Struct("<4xHHIIIHH")  # behind the signature
_IMPORT_TABLE = 24 + 112 + 8  # the second data directory, from the signature on
_SECTION = Struct("<8sIIII16x")
_IMPORT = Struct("<IIIII")
_BY_NUMBER = 1 << 63


def imported_symbols(library: bytes) -> set[str]:
    """What it imports, as `LIBRARY.dll:symbol`."""
    (header,) = unpack_from("<I", library, _HEADER_AT)
    _, n_sections, _, _, _, optional_bytes, _ = _FILE_HEADER.unpack_from(library, header)
    first_section = header + 24 + optional_bytes
    sections = [_SECTION.unpack_from(library, first_section + number * _SECTION.size) for number in range(n_sections)]
    (table,) = unpack_from("<I", library, header + _IMPORT_TABLE)
    return set(_imports(library, sections, table)) if table else set()


def _imports(library: bytes, sections: list[tuple[bytes, int, int, int, int]], table: int) -> Iterator[str]:
    def place(address: int) -> int:
        for _, size, start, _, offset in sections:
            if start <= address < start + size:
                return address - start + offset
        raise ValueError("an address outside all sections")

    def text(address: int) -> str:
        start = place(address)
        return library[start : library.index(b"\0", start)].decode("ascii")

    at = place(table)
    while (row := _IMPORT.unpack_from(library, at))[3]:
        name, entry = text(row[3]), place(row[0])
        while (symbol := unpack_from("<Q", library, entry)[0]) != 0:
            yield f"{name}:{symbol & 0xFFFF if symbol & _BY_NUMBER else text(symbol + 2)}"
            entry += 8
        at += _IMPORT.size
