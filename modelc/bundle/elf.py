"""What a linked ELF file says about itself. Source: System V ABI, generic and gABI chapters 4 and 5, 64-bit."""

from __future__ import annotations

from struct import Struct

_HEADER = Struct("<16sHHIQQQIHHHHHH")
_SECTION = Struct("<IIQQQQIIQQ")
_SYMBOL = Struct("<IBBHQQ")
_DYNAMIC_SYMBOLS = 11  # type of the section
_UNDEFINED = 0  # section index of what others must define


def undefined_symbols(library: bytes) -> set[str]:
    """Names that whoever loads the library must have."""
    return {name for name, section in _symbols(library) if section == _UNDEFINED and name}


def defined_symbols(library: bytes) -> set[str]:
    """Names that the library gives to others."""
    return {name for name, section in _symbols(library) if section != _UNDEFINED and name}


def _symbols(library: bytes) -> list[tuple[str, int]]:
    header = _HEADER.unpack_from(library)
    start, size, count = header[6], header[11], header[12]
    sections = [_SECTION.unpack_from(library, start + number * size) for number in range(count)]
    found = []
    for _, kind, _, _, offset, length, linked, *_ in sections:
        if kind == _DYNAMIC_SYMBOLS:
            texts = sections[linked]
            text = library[texts[4] : texts[4] + texts[5]]
            for at in range(offset, offset + length, _SYMBOL.size):
                symbol = _SYMBOL.unpack_from(library, at)
                found.append((text[symbol[0] : text.index(b"\0", symbol[0])].decode(), symbol[3]))
    return found
