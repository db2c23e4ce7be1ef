"""Unpacked folders that nobody has used for long are removed, and none that a process uses.

A process that uses a folder holds a shared lock on its archive of modules until it ends, and each start sets that
file's time. Who removes a folder holds the lock alone, and renames the folder first.
"""

from __future__ import annotations

import contextlib
import os
import time

MODULES = "modules.zip"
SCRATCH = ".unpacking-"  # how a folder begins that is being filled, or removed
UNUSED_S = 30 * 24 * 3600  # what is used once a month stays
SCRATCH_S = 24 * 3600  # what a process left that was killed while it unpacked
ID_CHARS = 32

_held: list[int] = []  # descriptors whose locks last as long as the process


def hold(folder: str) -> bool:
    """Keep an unpacked folder from being removed while this process runs; False where it is gone already."""
    path = os.path.join(folder, MODULES)
    try:
        descriptor = _locked(path, exclusive=False)
        with contextlib.suppress(OSError):  # a file system that is read-only
            os.utime(path)
        if os.stat(path).st_ino != os.fstat(descriptor).st_ino:
            os.close(descriptor)
            return False
    except FileNotFoundError:
        return False
    _held.append(descriptor)
    return True


def remove(base: str) -> None:
    """Remove the folders in `base` that have not been used for long; whatever fails is left for another time."""
    import shutil

    for name in os.listdir(base):
        folder = os.path.join(base, name)
        with contextlib.suppress(OSError):
            if name.startswith(SCRATCH):
                if _age_s(folder) > SCRATCH_S:
                    shutil.rmtree(folder, ignore_errors=True)
            elif len(name) == ID_CHARS and not set(name) - set("0123456789abcdef"):
                _remove_unused(folder, os.path.join(base, SCRATCH + name))


def _remove_unused(folder: str, aside: str) -> None:
    import shutil

    modules = os.path.join(folder, MODULES)
    if not os.path.isfile(modules):  # left by a cleaner of temporary files; nobody can start from it
        if _age_s(folder) > UNUSED_S:
            shutil.rmtree(folder, ignore_errors=True)
        return
    descriptor = _locked(modules, exclusive=True)
    try:
        if _age_s(modules) > UNUSED_S:
            os.rename(folder, aside)
            shutil.rmtree(aside, ignore_errors=True)
    finally:
        os.close(descriptor)


def _age_s(path: str) -> float:
    return time.time() - os.lstat(path).st_mtime


def _locked(path: str, exclusive: bool) -> int:
    """A descriptor of the file, which has the lock while it is open.

    Raises:
        OSError: another process has it, where it is asked for alone, or no locks exist here.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB if exclusive else fcntl.LOCK_SH)
    except (ImportError, OSError) as error:
        if exclusive:
            os.close(descriptor)
            raise OSError(0, "cannot be locked") from error
    return descriptor
