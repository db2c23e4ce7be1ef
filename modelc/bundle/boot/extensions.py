"""Finds extension modules by name: in the unpacked folder, or in memory where no folder can be written."""

from __future__ import annotations

import ctypes
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import zipimport
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

LIBRARIES = "libraries/"  # where shared objects are, in the unpacked folder
SUPPORT = ".libs/"  # libraries that extension modules need
FALLBACK = "fallback/"  # libraries of the C++ compiler, for systems that lack them


class Extensions(importlib.abc.MetaPathFinder):
    """Finds what is in shared objects, and what packages say about themselves.

    Args:
        files: path of each shared object, by its path among packages.
        modules: the zip archive with all other modules.
    """

    def __init__(self, files: dict[str, str], modules: str) -> None:
        self._modules = zipimport.zipimporter(modules)
        self._paths = {}
        for name, path in files.items():
            for suffix in importlib.machinery.EXTENSION_SUFFIXES:
                if name.endswith(suffix) and SUPPORT not in name:
                    self._paths[name[: -len(suffix)].replace("/", ".")] = path
                    break

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """As every finder does."""
        found = self._paths.get(name)
        if found is None:
            return None
        loader = importlib.machinery.ExtensionFileLoader(name, found)
        return importlib.util.spec_from_file_location(name, found, loader=loader)

    def find_distributions(
        self, context: importlib.metadata.DistributionFinder.Context | None = None
    ) -> Iterable[importlib.metadata.Distribution]:
        """Packages by name, without a search through the whole archive."""
        if context is None or context.name is None:
            return
        wanted = context.name.lower().replace("-", "_").replace(".", "_")
        files = zipimport._zip_directory_cache.get(self._modules.archive, {})  # type: ignore[attr-defined]
        for entry in files:
            folder = entry.partition(os.sep)[0]
            if entry == os.path.join(folder, "METADATA") and folder.lower().startswith(wanted + "-"):
                yield _Distribution(self._modules, folder)


class _Distribution(importlib.metadata.Distribution):
    def __init__(self, modules: zipimport.zipimporter, folder: str) -> None:
        self._modules, self._folder = modules, folder

    def read_text(self, filename: str) -> str | None:
        try:
            return self._modules.get_data(os.path.join(self._folder, filename)).decode("utf-8")
        except OSError:
            return None

    def locate_file(self, path: str | os.PathLike[str]) -> Any:
        raise NotImplementedError("files in a compiled file have no place of their own")


def load_support(files: dict[str, str], in_memory: bool) -> None:
    """Load the libraries that extension modules need and the loader would not find by itself."""
    for name, path in sorted(files.items()):
        if name.startswith(FALLBACK):
            try:
                ctypes.CDLL(os.path.basename(name))
            except OSError:
                ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    for name, path in sorted(files.items()):
        if in_memory and SUPPORT in name:
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)


def memory_files(contents: Iterator[tuple[str, bytes]]) -> dict[str, str]:
    """Files that exist in memory only, by name; Linux.

    Raises:
        OSError: the system refuses.
    """
    made = {}
    for name, content in contents:
        descriptor = os.memfd_create(os.path.basename(name), os.MFD_CLOEXEC)
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        made[name] = "/proc/self/fd/" + str(descriptor)
    return made
