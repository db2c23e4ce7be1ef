"""Opening a file for reading in place: checked, mapped, read-only."""

from __future__ import annotations

import mmap
import stat
from os import fstat
from pathlib import Path

from modelc.errors import BadFileError, NotFoundError, did_you_mean

_DOWNLOAD = "name a weights file, or download it again"


def map_file(path: Path) -> mmap.mmap:
    """Maps a file into memory, read-only; pages are read when touched.

    Args:
        path: A regular file.

    Returns:
        The mapping, never empty. Arrays made over it keep it alive.

    Raises:
        NotFoundError: No such file; near names in the same folder are suggested.
        BadFileError: A folder, a device, an empty or an unreadable file.
    """
    try:
        # Asked before opening, because opening a pipe waits for somebody to write into it.
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise BadFileError("this is a folder", path=path, expected="a file", hint="name a file in it")
        if not stat.S_ISREG(mode):
            raise BadFileError("this is a device or a pipe", path=path, expected="a file")
        with path.open("rb") as file:
            if fstat(file.fileno()).st_size == 0:
                raise BadFileError("the file is empty", path=path, hint=_DOWNLOAD)
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError("no such file", path=path, hint=did_you_mean(path.name, names_in(path.parent))) from None
    except (OSError, ValueError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadFileError("the file cannot be read", path=path, got=reason) from None


def is_folder(path: Path) -> bool:
    """Whether `path` is a folder; False where the system does not tell, because opening it will say why."""
    try:
        return path.is_dir()
    except OSError:
        return False


def exists(path: Path) -> bool:
    """Whether something is at `path`; False where the system does not tell."""
    try:
        return path.exists()
    except OSError:
        return False


def names_in(folder: Path) -> list[str]:
    """The names in a folder; none where the system does not tell."""
    try:
        return [entry.name for entry in folder.iterdir()]
    except OSError:
        return []
