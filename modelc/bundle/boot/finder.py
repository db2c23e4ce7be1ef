"""Finds what a compiled file carries: modules in their archive, extension modules, and what packages say of themselves.

A module takes two look-ups in a dictionary and no system call; Python's own way, `zipimport`, reads the archive's
directory at every start and opens the file for every module.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .bytecode import INDEX, MEMBER_HEADER_BYTES

if TYPE_CHECKING:
    from importlib.metadata import Distribution, DistributionFinder

CODE_AT = 16  # in a `.pyc`, source: PEP 552
STORED_BYTES = slice(18, 22)  # in a member's header


class Modules:
    """The archive of modules, kept open, so that deleting the file disturbs no process that has begun.

    Args:
        archive: the file that it is, or that it is in.
        at: where it begins there.

    Attributes:
        archive: its path.
        members: where each is, and its size.
    """

    def __init__(self, archive: str, at: int = 0) -> None:
        self.archive = archive
        self._file = os.open(archive, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        header = self._read(at, MEMBER_HEADER_BYTES)
        index_at = at + MEMBER_HEADER_BYTES + len(INDEX)
        index_bytes = int.from_bytes(header[STORED_BYTES], "little")
        self._start = index_at + index_bytes
        self.members: dict[str, tuple[int, int]] = marshal.loads(self._read(index_at, index_bytes))

    def path(self) -> str:
        """A path by which the archive can be opened now."""
        return _still(self.archive, self._file)

    def read(self, member: str) -> bytes:
        """A member's content."""
        at, size = self.members[member]
        return self._read(self._start + at, size)

    def _read(self, at: int, size: int) -> bytes:
        if hasattr(os, "pread"):
            return os.pread(self._file, size, at)
        with open(self.archive, "rb") as file:
            file.seek(at)
            return file.read(size)


class Finder:
    """A finder for `sys.meta_path`.

    Args:
        modules: the archive of modules.
        shared_objects: path of each shared object, by its path among packages.
    """

    def __init__(self, modules: Modules, shared_objects: Mapping[str, str]) -> None:
        self._modules = modules
        self._extensions: dict[str, tuple[str, int | None]] = {}
        for name, path in shared_objects.items():
            for suffix in EXTENSION_SUFFIXES:
                if name.endswith(suffix):
                    self._extensions[name[: -len(suffix)].replace("/", ".")] = path, _kept_open(path)
                    break

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As every finder does."""
        place = name.replace(".", "/")
        for member in (place + ".pyc", place + "/__init__.pyc"):
            if member in self._modules.members:
                return _spec(name, _Loader(self._modules, member), os.path.join(self._modules.archive, member))
        if name in self._extensions:
            extension = _still(*self._extensions[name])
            return _spec(name, ExtensionFileLoader(name, extension), extension)
        return None

    def find_distributions(self, context: DistributionFinder.Context | None = None) -> Iterator[Distribution]:
        """The package of a name."""
        if context is None or context.name is None:
            return
        from .distribution import CarriedDistribution

        wanted = context.name.lower().replace("-", "_").replace(".", "_")
        for member in self._modules.members:
            folder, _, file = member.partition("/")
            if file == "METADATA" and folder.lower().startswith(wanted + "-"):
                yield CarriedDistribution(self._modules, folder)


class _Loader:
    """Loads a module of the archive."""

    def __init__(self, modules: Modules, member: str) -> None:
        self._modules, self._member = modules, member

    def create_module(self, spec: ModuleSpec) -> None:
        """Python's usual object."""

    def exec_module(self, module: ModuleType) -> None:
        exec(self.get_code(module.__name__), module.__dict__)

    def get_code(self, name: str) -> Any:
        return marshal.loads(memoryview(self._modules.read(self._member))[CODE_AT:])

    def is_package(self, name: str) -> bool:
        return self._member.endswith("/__init__.pyc")

    def get_data(self, path: str) -> bytes:
        """The content of a file beside modules, for `pkgutil.get_data`."""
        member = os.path.relpath(path, self._modules.archive).replace(os.sep, "/")
        try:
            return self._modules.read(member)
        except KeyError:
            raise FileNotFoundError(2, "not in the archive of modules", path) from None

    def get_resource_reader(self, name: str) -> Any:
        """For `importlib.resources`, which reads the archive as a zip file."""
        from importlib.readers import ZipReader

        self.archive = self._modules.path()
        self.prefix = self._member.rpartition("/")[0].rpartition("/")[0]
        self.prefix += "/" if self.prefix else ""
        return ZipReader(self, name)  # type: ignore[arg-type]


def _kept_open(path: str) -> int | None:
    """A descriptor for `_still`, where the system has a use for one."""
    return os.open(path, os.O_RDONLY) if sys.platform == "linux" and os.path.exists(path) else None


def _still(path: str, descriptor: int | None) -> str:
    """A path to what was `path` when it was opened: Linux has one although a cleaner of temporary files deleted it."""
    is_gone = descriptor is not None and sys.platform == "linux" and not os.path.exists(path)
    return "/proc/self/fd/" + str(descriptor) if is_gone else path


def _spec(name: str, loader: Any, origin: str) -> ModuleSpec:
    is_package = loader.is_package(name)
    spec = ModuleSpec(name, loader, origin=origin, is_package=is_package)
    spec.has_location = True
    if is_package and spec.submodule_search_locations is not None:
        # A place that does not exist: who looks for a module that is not here asks `zipimport` otherwise.
        spec.submodule_search_locations.append(os.path.join(sys.prefix, "modelc-carries", name))
    return spec
