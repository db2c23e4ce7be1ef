"""What a linked macOS library asks of others, and whether it is signed. Source: Apple's `mach-o/loader.h`, 64-bit."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct, unpack_from

_HEADER = Struct("<IiiIIIII")
_COMMAND = Struct("<II")
_SYMBOL_TABLE, _CODE_SIGNATURE = 0x2, 0x1D
_SYMBOL = Struct("<IBBHQ")
_EXTERNAL, _KIND, _UNDEFINED = 0x01, 0x0E, 0x00  # of a symbol's type


def undefined_symbols(library: bytes) -> set[str]:
    """Names in C of what others must define."""
    names = set()
    for kind, at in _commands(library):
        if kind == _SYMBOL_TABLE:
            symbols, count, texts, _ = unpack_from("<IIII", library, at + _COMMAND.size)
            for number in range(count):
                text, what, *_ = _SYMBOL.unpack_from(library, symbols + number * _SYMBOL.size)
                if what & _EXTERNAL and what & _KIND == _UNDEFINED:
                    start = texts + text
                    names.add(library[start : library.index(b"\0", start)].decode("ascii").removeprefix("_"))
    return names


def is_signed(library: bytes) -> bool:
    """Whether there is a signature, without which macOS on AArch64 loads nothing."""
    return any(kind == _CODE_SIGNATURE for kind, _ in _commands(library))


def _commands(library: bytes) -> Iterator[tuple[int, int]]:
    """Kind and place of each load command."""
    at = _HEADER.size
    for _ in range(_HEADER.unpack_from(library)[4]):
        kind, size = _COMMAND.unpack_from(library, at)
        yield kind, at
        at += size
