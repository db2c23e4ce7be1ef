"""The `.modelc` inside a compiled file: 64 KiB behind its beginning, so that every system can map it in place.

What stands before it starts the file (a program for the shell, or an executable's launcher), and what follows it is a
zip archive; neither is read here.
"""

from __future__ import annotations

from mmap import ACCESS_READ, mmap
from pathlib import Path

from modelc.formats.mapping import map_file
from modelc.formats.modelc.header import PREFIX_BYTES, damaged
from modelc.formats.signature import MODELC_MAGIC

START = 1 << 16  # where the `.modelc` begins: a multiple of every system's unit of mapping
_BEGINNINGS = (b"#!", b"\x7fELF")
_LENGTH = slice(START + 24, START + 32)  # the field of the `.modelc` that says how long it is


def is_compiled(data: bytes | mmap) -> bool:
    """Whether a file's content is that of a compiled file; `data` may end behind the first bytes of the `.modelc`."""
    return data[:4].startswith(_BEGINNINGS) and data[START : START + len(MODELC_MAGIC)] == MODELC_MAGIC


def is_compiled_file(path: Path) -> bool:
    """Whether `path` is a compiled file; False where it cannot be read."""
    try:
        with path.open("rb") as file:
            return is_compiled(file.read(START + len(MODELC_MAGIC)))
    except OSError:
        return False


def map_packed(path: Path) -> mmap:
    """Maps a `.modelc` file, or the one in a compiled file, read-only.

    Raises:
        NotFoundError: No such file.
        BadFileError: A file that cannot be mapped, or a compiled one that ends before its weights do.
    """
    data = map_file(path)
    if not is_compiled(data):
        return data
    length = int.from_bytes(data[_LENGTH], "little")
    if not PREFIX_BYTES <= length <= len(data) - START:
        raise damaged("the weights do not fit the file", path, f"at most {len(data) - START} bytes", f"{length} bytes")
    with path.open("rb") as file:
        return mmap(file.fileno(), length, access=ACCESS_READ, offset=START)
