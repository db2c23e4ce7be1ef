"""Metadata values of a GGUF file: scalars, strings and arrays, read at a cursor that checks before it reads.

Source: ggml's GGUF specification, versions 2 and 3 (little-endian; a string is a u64 length and its bytes).
"""

from __future__ import annotations

from mmap import mmap
from pathlib import Path
from struct import Struct

import numpy as np

from modelc.errors import BadFileError
from modelc.ir import JSON, MAX_NAME_CHARS

MAX_ARRAY_DEPTH = 8
# One byte in the file may become a Python object of 64, so the number of elements is bounded over the whole file.
# The largest vocabularies (262,144 tokens with scores, types and merges) have about 1.3 million.
MAX_ELEMENTS = 1 << 23
MAX_STRING_BYTES = 1 << 28

TRUNCATED = "the file is damaged or not complete: download it again"

_BOOL, _STRING, _ARRAY = 7, 8, 9

# Type number -> NumPy type; strings and arrays are read by functions of their own.
_SCALARS: dict[int, np.dtype[np.generic]] = {
    0: np.dtype("u1"),
    1: np.dtype("i1"),
    2: np.dtype("<u2"),
    3: np.dtype("<i2"),
    4: np.dtype("<u4"),
    5: np.dtype("<i4"),
    6: np.dtype("<f4"),
    _BOOL: np.dtype("u1"),
    10: np.dtype("<u8"),
    11: np.dtype("<i8"),
    12: np.dtype("<f8"),
}

# The least that an array's element takes in the file: a count that cannot fit is refused before memory is asked for.
_LEAST_BYTES = {**{number: dtype.itemsize for number, dtype in _SCALARS.items()}, _STRING: 8, _ARRAY: 12}

_U32 = Struct("<I")
_U64 = Struct("<Q")


class Cursor:
    """A position in a GGUF file.

    Attributes:
        pos: Byte offset of the next value.
        size: Size of the file in bytes.
    """

    def __init__(self, data: mmap, path: Path) -> None:
        self.pos = 0
        self.size = len(data)
        self._data = data
        self._path = path
        self._elements_left = MAX_ELEMENTS

    def error(self, what: str, *, expected: object = None, got: object = None, hint: str = TRUNCATED) -> BadFileError:
        """A `BadFileError` at this position, to be raised by the caller."""
        return BadFileError(what, path=self._path, offset=self.pos, expected=expected, got=got, hint=hint)

    def u32(self) -> int:
        """The next four bytes as an unsigned number."""
        self._need(4, "a number")
        self.pos += 4
        return int(_U32.unpack_from(self._data, self.pos - 4)[0])

    def u64(self) -> int:
        """The next eight bytes as an unsigned number."""
        self._need(8, "a number")
        self.pos += 8
        return int(_U64.unpack_from(self._data, self.pos - 8)[0])

    def count(self, what: str, least_bytes: int, most: int) -> int:
        """The next number as a count of `what`, each of at least `least_bytes` in the rest of the file."""
        n = self.u64()
        room = (self.size - self.pos) // least_bytes
        if n > min(room, most):
            self.pos -= 8
            raise self.error(f"too many {what}", expected=f"at most {min(room, most)}", got=n)
        return n

    def name(self, what: str) -> str:
        """The next string as the name of `what`."""
        start = self.pos
        text = self.string(what)
        if not 0 < len(text) <= MAX_NAME_CHARS:
            self.pos = start
            raise self.error(f"{what} of wrong length", expected=f"1 to {MAX_NAME_CHARS}", got=len(text))
        return text

    def string(self, what: str = "a string") -> str:
        """The next string; invalid UTF-8 is kept as surrogate escapes."""
        n_bytes = self.u64()
        if n_bytes > min(self.size - self.pos, MAX_STRING_BYTES):
            self.pos -= 8
            raise self._too_long(what, n_bytes)
        self.pos += n_bytes
        return self._data[self.pos - n_bytes : self.pos].decode("utf-8", "surrogateescape")

    def value(self, kind: int) -> JSON:
        """The next value, of type number `kind`."""
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            return self._array(1)
        return self._scalars(kind, 1)[0]

    def _array(self, depth: int) -> list[JSON]:
        if depth > MAX_ARRAY_DEPTH:
            raise self.error("arrays nested too deeply", expected=f"at most {MAX_ARRAY_DEPTH} levels", got=f"{depth}")
        kind = self.u32()
        if kind not in _LEAST_BYTES:
            self.pos -= 4
            raise self._unknown(kind)
        n = self.count("elements", _LEAST_BYTES[kind], self._elements_left)
        self._elements_left -= n
        if kind == _STRING:
            return self._strings(n)
        if kind == _ARRAY:
            return [self._array(depth + 1) for _ in range(n)]
        return self._scalars(kind, n)

    def _strings(self, n: int) -> list[JSON]:
        """The next `n` strings. A vocabulary has some 100,000, so this loop calls nothing that it can avoid."""
        data, size, length_at = self._data, self.size, _U64.unpack_from
        strings: list[JSON] = []
        append = strings.append
        pos = self.pos
        last = size - 8
        for _ in range(n):
            if pos > last:
                self.pos = pos
                raise self._truncated("a string")
            start = pos + 8
            end = start + length_at(data, pos)[0]
            if end > size or end - start > MAX_STRING_BYTES:
                self.pos = pos
                raise self._too_long("a string", end - start)
            append(data[start:end].decode("utf-8", "surrogateescape"))
            pos = end
        self.pos = pos
        return strings

    def _scalars(self, kind: int, n: int) -> list[JSON]:
        dtype = _SCALARS.get(kind)
        if dtype is None:
            raise self._unknown(kind)
        self._need(n * dtype.itemsize, "a number")
        values = np.frombuffer(self._data, dtype, n, self.pos)
        if kind == _BOOL:
            if values.max(initial=0) > 1:
                raise self.error("a truth value is neither false nor true", expected="0 or 1", got=values.max())
            values = values.astype(np.bool_)
        self.pos += n * dtype.itemsize
        return list(values.tolist())

    def _need(self, n_bytes: int, what: str) -> None:
        if n_bytes > self.size - self.pos:
            raise self._truncated(what)

    def _truncated(self, what: str) -> BadFileError:
        return self.error(f"the file ends inside {what}", expected="more bytes", got=f"{self.size} bytes")

    def _too_long(self, what: str, n_bytes: int) -> BadFileError:
        room = min(self.size - self.pos - 8, MAX_STRING_BYTES)
        return self.error(f"{what} is too long", expected=f"at most {room} bytes", got=f"{n_bytes} bytes")

    def _unknown(self, kind: int) -> BadFileError:
        return self.error("unknown metadata type", expected="0 to 12", got=kind)
