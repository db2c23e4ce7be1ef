"""Compiled loops on disk: Numba's cache with another idea of what makes an entry valid.

Numba's own neither hits for closures over other compiled functions, nor notices edits in imported files, nor keeps
machines apart that share a home folder, and it wants a source file to look at. Here the folder is named by everything
that decides the code (sources, versions, CPU), and an entry in it by the loop's name. Numba writes files under a
temporary name and renames them, so several processes may compile at once; without a writable folder loops live in
memory only.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.resources
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache

from modelc.settings import cache_folder


@functools.cache
def loop_cache_folder() -> Path:
    """Where compiled loops are kept: a folder that belongs to these sources, versions and this CPU alone."""
    digest = hashlib.blake2b(digest_size=12)
    sources = importlib.resources.files(__package__)
    for source in sorted(sources.iterdir(), key=lambda entry: entry.name):
        if source.name.endswith(".py"):
            digest.update(source.name.encode() + b"\0" + source.read_bytes())
    config: Any = numba.config
    cpu = (llvmlite.binding.get_host_cpu_name(), llvmlite.binding.get_host_cpu_features().flatten())
    for part in (numba.__version__, llvmlite.__version__, *cpu, config.CPU_NAME, config.CPU_FEATURES, config.OPT):
        digest.update(str(part).encode() + b"\0")
    return cache_folder() / f"numba-{numba.__version__}-{digest.hexdigest()}"


class _Locator:
    """The answer to Numba's question where the cache of a function is."""

    _py_file = __file__  # named by Numba when it warns

    @classmethod
    def from_function(cls, function: Callable[..., None], file: str) -> _Locator:
        return cls()

    def get_cache_path(self) -> str:
        return str(loop_cache_folder())

    def get_source_stamp(self) -> str:
        return loop_cache_folder().name

    def get_disambiguator(self) -> str:
        return "loop"

    def ensure_cache_path(self) -> None:
        folder = loop_cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()


class _LoopCacheImpl(CompileResultCacheImpl):
    _locator_classes: list[Any] = [_Locator]  # noqa: RUF012


class LoopCache(FunctionCache):
    """The cache of one function, by its `__qualname__`; neither a damaged entry nor a full disk is an error."""

    _impl_class = _LoopCacheImpl

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return sig, codegen.magic_tuple()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was saved for the signature, or None."""
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:  # a damaged pickle raises whatever it likes
            with contextlib.suppress(OSError):
                self.flush()  # type: ignore[no-untyped-call]  # or the next save would read the same damaged index
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Saves what was compiled for the signature, where it can."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
