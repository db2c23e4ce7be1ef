"""The private folder into which a compiled file unpacks what it carries, once for all its starts."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Any

from . import unused
from .archive import Archive, Damaged
from .bytecode import compiled

MODULES = unused.MODULES


def unpacked(archive: Archive, payload: dict[str, Any]) -> tuple[str | None, list[str]]:
    """The folder with everything, unpacked if it was not there; None where no place is fit, and why.

    Raises:
        Damaged: what should be unpacked is not what was built.
    """
    reasons: list[str] = []
    for base in _places():
        folder = os.path.join(base, payload["id"])
        try:
            _make_private(base)
            if not (_is_whole(folder, payload) and unused.hold(folder)):
                _unpack(archive, payload, base, folder)
                unused.hold(folder)
                unused.remove(base)
            return folder, reasons
        except OSError as error:
            reasons.append(base + ": " + (error.strerror or str(error)))
    return None, reasons


def contents(archive: Archive, payload: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """What is unpacked, by where it goes.

    Raises:
        Damaged: it is not what was built.
    """
    for place, content in archive.read_all(payload["files"]):
        yield place, compiled(content) if place == MODULES and payload["sources"] else content


def verify(folder: str, payload: dict[str, Any]) -> None:
    """Check that unpacked files are what the compiled file carries.

    Raises:
        Damaged: one is not; it says which.
    """
    import hashlib

    for place, _, _, digest in payload["files"]:
        with open(os.path.join(folder, place), "rb") as file:
            if hashlib.sha256(file.read()).hexdigest() != digest and not (place == MODULES and payload["sources"]):
                raise Damaged(os.path.join(folder, place) + " is damaged: delete the folder, which is made again")


def _places() -> list[str]:
    """Folders to try, the best first; `MODELC_CACHE` is the only one where it is set."""
    environment = os.environ
    if environment.get("MODELC_CACHE"):
        return [os.path.join(environment["MODELC_CACHE"], "compiled")]
    user = str(os.getuid()) if hasattr(os, "getuid") else environment.get("USERNAME", "user")
    places = []
    if environment.get("XDG_CACHE_HOME"):
        places.append(os.path.join(environment["XDG_CACHE_HOME"], "modelc", "compiled"))
    if environment.get("LOCALAPPDATA"):
        places.append(os.path.join(environment["LOCALAPPDATA"], "modelc", "Cache", "compiled"))
    home = os.path.expanduser("~")
    if os.path.isabs(home) and home != os.sep:
        places.append(os.path.join(home, ".cache", "modelc", "compiled"))
    temporary = [environment.get("TMPDIR"), "/var/tmp", "/tmp", "/dev/shm"]
    return places + [os.path.join(folder, "modelc-" + user) for folder in temporary if folder and os.path.isdir(folder)]


def _make_private(base: str) -> None:
    """A folder of ours in which nobody else can write, and from which libraries can be loaded."""
    os.makedirs(base, 0o700, exist_ok=True)
    if not hasattr(os, "getuid"):
        return
    found = os.lstat(base)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise OSError(0, "not a folder that is yours alone")
    if hasattr(os, "ST_NOEXEC") and os.statvfs(base).f_flag & os.ST_NOEXEC:
        raise OSError(0, "mounted without permission to execute")


def _is_whole(folder: str, payload: dict[str, Any]) -> bool:
    """Whether everything is there; a cleaner of temporary files may have taken a part of it."""
    try:
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            return False
        for place, _, size, _ in payload["files"]:
            found = os.lstat(os.path.join(folder, place))
            is_compiled_here = place == MODULES and payload["sources"]
            if not stat.S_ISREG(found.st_mode) or (found.st_size != size and not is_compiled_here):
                return False
        return True
    except OSError:
        return False


def _unpack(archive: Archive, payload: dict[str, Any], base: str, folder: str) -> None:
    """All or nothing: the folder gets its name when it is complete, whoever of several processes is first."""
    import shutil

    scratch = os.path.join(base, unused.SCRATCH + os.urandom(8).hex())
    try:
        os.mkdir(scratch, 0o700)
        for place, content in contents(archive, payload):
            path = os.path.join(scratch, place)
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            with open(path, "xb") as file:
                file.write(content)
        try:
            os.rename(scratch, folder)
        except OSError:
            if _is_whole(folder, payload):
                return  # another process was quicker
            _replace(scratch, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _replace(scratch: str, folder: str) -> None:
    """Put the complete folder where something else is: an incomplete one, or what does not belong there."""
    import shutil

    aside = scratch + "-old"
    os.rename(folder, aside)
    try:
        os.rename(scratch, folder)
    finally:
        if os.path.isdir(aside) and not os.path.islink(aside):
            shutil.rmtree(aside, ignore_errors=True)
        else:
            os.unlink(aside)
