"""The byte alphabet of byte-level BPE (GPT-2, 2019): one printable character for each of the 256 byte values.

Vocabularies and merges are stored as text over this alphabet. A byte that is a visible Latin-1 character stands for
itself; the other 68 take U+0100 and up, in ascending order of the byte.
"""

from __future__ import annotations

_VISIBLE = frozenset([*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)])
_HIDDEN = [byte for byte in range(256) if byte not in _VISIBLE]

BYTE_CHARS: tuple[str, ...] = tuple(
    chr(byte if byte in _VISIBLE else 0x100 + _HIDDEN.index(byte)) for byte in range(256)
)
"""The character for each byte value."""

_TO_CHARS = dict(enumerate(BYTE_CHARS))
_TO_BYTES = {ord(char): byte for byte, char in enumerate(BYTE_CHARS)}


def bytes_to_chars(data: bytes) -> str:
    """Write `data` in the alphabet, one character a byte."""
    return data.decode("latin-1").translate(_TO_CHARS)


def chars_to_bytes(text: str) -> bytes:
    """Undo `bytes_to_chars`; text with a character outside the alphabet is taken as it is, in UTF-8."""
    if all(ord(char) in _TO_BYTES for char in text):
        return text.translate(_TO_BYTES).encode("latin-1")
    return utf8(text)


def utf8(text: str) -> bytes:
    """`text` in UTF-8; bytes that a reader kept as surrogate escapes come out as they were."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")
