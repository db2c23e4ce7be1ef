"""Files that exist in memory only."""

from __future__ import annotations

import os

OWN_FILE = "/proc/self/exe"  # what the launcher of an executable calls the file, and Python its home


def memory_file(name: str, content: bytes) -> str:
    """The path of a new file in memory; Linux.

    It stays open: the system's loader knows libraries by their paths, so no other file may ever have this one.

    Raises:
        OSError: the system refuses.
    """
    descriptor = os.memfd_create(os.path.basename(name), os.MFD_CLOEXEC)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    return "/proc/self/fd/" + str(descriptor)
