"""Compiled loops on disk, as `kernels.objects` keeps kernels: linked without Numba at the next start.

A file is named by the loop and by everything that decides its code: the sources of this package, the versions of the
compiler, and the CPU.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.resources
from collections.abc import Callable
from pathlib import Path

from modelc.kernels.objects import ObjectCache

Step = Callable[..., None]


class LoopCache(ObjectCache):
    """Addresses of compiled loops, from memory, the cache folder or the compiler."""

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__(folder)
        self._steps: dict[str, Callable[[], Step]] = {}

    def address(self, name: str, make_step: Callable[[], Step]) -> int:
        """Machine address of the loop `name`, whose code `make_step` makes where it has to be compiled."""
        self._steps[name] = make_step
        return self.addresses([name])[name]

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}-{sources_key()}.o"

    def _object(self, name: str) -> tuple[str, bytes]:
        from modelc.layout.loop_compiler import compile_step

        return compile_step(self._steps[name]())


@functools.cache
def sources_key() -> str:
    """Hash of the sources of this package."""
    digest = hashlib.blake2b(digest_size=12)
    for source in sorted(importlib.resources.files(__package__).iterdir(), key=lambda entry: entry.name):
        if source.name.endswith(".py"):
            digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()
