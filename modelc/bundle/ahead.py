"""Kernels for this computer from libraries in the cache folder: no compiler in the process that computes."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from importlib import metadata
from pathlib import Path

from modelc.bundle.isas import choose_isa, isas_of
from modelc.bundle.kept import keep, kept
from modelc.bundle.target import host_target
from modelc.errors import UnsupportedError, WriteError
from modelc.kernels.catalogue import recipe
from modelc.kernels.library import KernelLibrary
from modelc.kernels.objects import source_key
from modelc.kernels.source import Progress
from modelc.settings import cache_folder


class AheadOfTime:
    """Addresses of functions in libraries that are built once, by other processes, and then found in the cache.

    Attributes:
        isa: the instruction set they are for.
        folder: where the libraries are.

    Args:
        isa: its name; None for the best that this processor has.
        folder: None for the user's cache.

    Raises:
        BadInputError: this processor lacks the instruction set.
        UnsupportedError: nothing can be built for this computer.
    """

    def __init__(self, isa: str | None = None, folder: Path | None = None) -> None:
        target = host_target()
        if target is None:
            raise UnsupportedError("system", expected="Linux, Windows on x86-64, or macOS on AArch64")
        self._target = target
        self.isa = choose_isa([each.name for each in isas_of(target.machine)], isa)
        self.folder = cache_folder() / "kernels" / "libraries" if folder is None else folder
        self._libraries: list[KernelLibrary] = []
        self._addresses: dict[str, int] = {}

    def addresses(self, names: Sequence[str], progress: Progress | None = None) -> dict[str, int]:
        """Machine addresses of opcodes and other functions (see `catalogue`).

        Args:
            names: what is wanted.
            progress: told (done, total, name) about each that had to be compiled.

        Raises:
            NotFoundError: they must be built, and there is no linker.
            WriteError: the library cannot be kept, so it cannot be loaded.
        """
        missing = sorted({name for name in names if name not in self._addresses})
        if missing:
            library = KernelLibrary(self._library(missing, progress))
            self._addresses |= library.addresses(missing)
            self._libraries.append(library)
        return {name: self._addresses[name] for name in names}

    def _library(self, names: Sequence[str], progress: Progress | None) -> Path:
        versions = (metadata.version("numba"), metadata.version("llvmlite"), self.isa.cpu, self.isa.llvm_features)
        what = repr((versions, [(name, source_key(*recipe(name))) for name in names]))
        file = self.folder / f"{self.isa.name}-{blake2b(what.encode(), digest_size=12).hexdigest()}.so"
        if kept(file) is None:
            from modelc.bundle.kernels import build_libraries

            built = build_libraries(names, [self.isa], self._target, progress=progress)
            if not keep(file, built[self.isa.name]):
                raise WriteError("compiled kernels cannot be kept", path=file, hint="choose a place with MODELC_CACHE")
        return file
