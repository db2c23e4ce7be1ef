"""The Python that an executable brings along: its standard library, straight out of the file.

The interpreter has the file for its home, and imports what it begins with by its own means; from then on, modules are
read from an archive of modules that lies in the file as it is, and extension modules are loaded through memory.
"""

from __future__ import annotations

import sys
import zipimport
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from types import ModuleType

from .bytecode import MEMBER_HEADER_BYTES
from .finder import Finder, Modules
from .memory import OWN_FILE, memory_file

HOME = f"{sys.platlibdir}/python{sys.version_info[0]}.{sys.version_info[1]}/"  # where Python looks below its home
LIBRARY = "library.zip"  # the archive of the others
EXTENSIONS = "lib-dynload/"  # where it has extension modules
_BEGINS = 4  # in the rows of `zipimport`, where a member begins in the file


def install() -> None:
    """Make the standard library importable."""
    begins = zipimport._zip_directory_cache[OWN_FILE][LIBRARY][_BEGINS]  # type: ignore[attr-defined]
    modules = Modules(OWN_FILE, begins + MEMBER_HEADER_BYTES + len(LIBRARY))
    sys.meta_path.insert(-1, StandardLibrary(modules))


class StandardLibrary(Finder):
    """A finder for `sys.meta_path`."""

    def __init__(self, modules: Modules) -> None:
        super().__init__(modules, {})

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As every finder does."""
        for suffix in EXTENSION_SUFFIXES:
            member = EXTENSIONS + name + suffix
            if member in self._modules.members:
                place = memory_file(name, self._modules.read(member))
                spec = ModuleSpec(name, ExtensionFileLoader(name, place), origin=place)
                spec.has_location = True
                return spec
        return super().find_spec(name, path, target)
