"""What an executable's launcher is told about the file around it: 32 words just before the weights.

The launcher (see `launch`) reads it before anything else and believes nothing that the sums do not confirm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from modelc.errors import UnsupportedError
from modelc.formats.modelc.compiled import START

WORDS = 32  # little-endian integers of 64 bits
RECORD_AT = START - 8 * WORDS
MAGIC = int.from_bytes(b"modelcX1", "little")

# Places of the words.
R_MAGIC = 0
R_SUMS = 1  # two words: of the words behind them
R_FILE_BYTES = 3
R_GLIBC = 4  # the least minor version of glibc 2 that everything inside is content with
R_HEAD_SUMS = 5  # two words: of all bytes before the record
R_PLAIN_AT = 7  # the part of the file that is used in place
R_PLAIN_BYTES = 8  # a multiple of 8
R_PLAIN_SUMS = 9  # two words
R_LIBRARIES = 11  # how many shared libraries to load, each after those that it needs
R_LIBRARY = 12  # of each of them: where it begins in the file, and how long it is
MAX_LIBRARIES = (WORDS - R_LIBRARY) // 2


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a file, in bytes from its beginning."""

    start: int
    length: int


def record(head: bytes, file_bytes: int, glibc: int, plain: bytes, plain_at: int, libraries: Sequence[Span]) -> bytes:
    """The record of a file.

    Args:
        head: what stands before the record, RECORD_AT bytes.
        file_bytes: length of the whole file.
        glibc: minor version of glibc 2.
        plain: the part of the file that is used in place, a multiple of 8 bytes.
        plain_at: where it begins.
        libraries: the shared libraries to load, which lie in that part; the last one is Python's.

    Raises:
        UnsupportedError: more libraries than the record has room for.
    """
    if len(libraries) > MAX_LIBRARIES:
        raise UnsupportedError("libraries of Python", expected=f"at most {MAX_LIBRARIES}", got=f"{len(libraries)}")
    words = np.zeros(WORDS, "<u8")
    words[R_MAGIC] = MAGIC
    words[R_FILE_BYTES : R_GLIBC + 1] = file_bytes, glibc
    words[R_HEAD_SUMS : R_HEAD_SUMS + 2] = sums(head)
    words[R_PLAIN_AT : R_PLAIN_BYTES + 1] = plain_at, len(plain)
    words[R_PLAIN_SUMS : R_PLAIN_SUMS + 2] = sums(plain)
    words[R_LIBRARIES] = len(libraries)
    for number, library in enumerate(libraries):
        words[R_LIBRARY + 2 * number : R_LIBRARY + 2 * number + 2] = library.start, library.length
    words[R_SUMS : R_SUMS + 2] = sums(words[R_FILE_BYTES:].tobytes())
    return words.tobytes()


def sums(data: bytes) -> tuple[int, int]:
    """Fletcher's two sums over words of 64 bits, modulo 2^64; `launch` computes the same, eight bytes a cycle.

    Args:
        data: a multiple of 8 bytes.

    Returns:
        The sum of the words, and the sum of that sum after each word.
    """
    words = np.frombuffer(data, "<u8")
    weights = np.arange(len(words), 0, -1, dtype=np.uint64)
    return int(words.sum(dtype=np.uint64)), int((words * weights).sum(dtype=np.uint64))
