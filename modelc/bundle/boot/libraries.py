"""Shared objects of a compiled file: loaded where the system does not find them, or kept in memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from .memory import OWN_FILE, memory_file

LIBRARIES = "libraries/"  # where shared objects are, in the unpacked folder
SUPPORT = ".libs/"  # libraries that extension modules need
FALLBACK = "fallback/"  # libraries of the C++ compiler, for systems that lack them


def load_support(files: dict[str, str], in_memory: bool) -> None:
    """Load the libraries that extension modules need and the loader would not find by itself."""
    import ctypes

    for name, path in sorted(files.items()):
        if name.startswith(FALLBACK):
            try:
                ctypes.CDLL(path if sys.prefix == OWN_FILE else os.path.basename(name))
            except OSError:
                ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    # Windows looks for them among those that are loaded; packages would tell it where they are, had they folders.
    for name, path in sorted(files.items()):
        if SUPPORT in name and (in_memory or sys.platform == "win32"):
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)


def memory_files(contents: Iterator[tuple[str, bytes]]) -> dict[str, str]:
    """Files that exist in memory only, by name; Linux.

    Raises:
        OSError: the system refuses.
    """
    return {name: memory_file(name, content) for name, content in contents}
