"""Writing a file so that its name never stands for half of it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from modelc.errors import BadInputError, WriteError
from modelc.formats.mapping import exists, is_folder


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Opens a temporary file beside `path` that takes its name when the block ends, flushed to disk.

    After an exception, or a kill at any moment, `path` is what it was before; after an exception the temporary file is
    gone too.

    Args:
        path: The file to create or replace; its folder exists.

    Yields:
        The temporary file, empty, open for reading and writing.

    Raises:
        BadInputError: `path` is a folder, a device or no path at all, or its folder does not exist.
        WriteError: The system refuses to write, for example because the disk is full.
    """
    # A device that takes whatever is written, like /dev/null, would become a file.
    if "\0" in str(path) or (exists(path) and not path.is_file()):
        raise BadInputError("the output cannot be a file", param="output", got=path, expected="a file name")
    if not is_folder(path.parent):
        raise BadInputError(
            "the output's folder does not exist", param="output", got=path, hint=f"create {path.parent} first"
        )
    # The name starts with a dot and ends in ".tmp", so that no listing takes it for a model.
    temporary = path.with_name(f".modelc-{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("x+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _flush_folder(path.parent)
    except OSError as error:
        hint = "make room or choose another place"
        raise WriteError("cannot write the file", path=path, got=error.strerror or str(error), hint=hint) from None
    finally:
        # After the renaming there is nothing left to remove.
        with suppress(OSError):
            temporary.unlink()


def refuse_overwriting(source: Path, output: Path) -> None:
    """Keeps a model from being replaced by what is made of it.

    Raises:
        BadInputError: `output` is the file `source`, by whatever path.
    """
    is_source = False
    with suppress(OSError, ValueError):  # no such file, or no path at all
        is_source = output.samefile(source)
    if is_source:
        hint = "choose another name"
        raise BadInputError("the output is the model itself", param="output", got=output, hint=hint)


def _flush_folder(folder: Path) -> None:
    """Makes the new name itself durable, on systems where a folder can be opened (not Windows)."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
