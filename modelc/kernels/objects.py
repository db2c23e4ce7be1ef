"""Machine code of opcodes: compiled once, kept as object files in the user's cache folder, linked by address.

Numba's own cache never hits for functions whose closures hold other functions, and does not notice edits in imported files; here
the key is a hash of all kernel sources, the CPU's features and the versions of Numba and llvmlite. Files are written to a temporary
name and renamed, so several processes may compile at once; without a writable folder everything is compiled in memory.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba import types
from numba.core.registry import cpu_target
from platformdirs import user_cache_dir

from modelc.kernels import catalogue, executor, sample

INT64 = types.int64
# Functions that Python calls, beside the opcodes: their arguments' types.
FUNCTIONS = {
    "execute": (executor.execute, (INT64,) * 5),
    "worker": (executor.worker, (INT64,) * 5),
    "sample": (sample.sample, (INT64,)),
}

Progress = Callable[[int, int, str], None]


class ObjectCache:
    """Addresses of compiled functions, from memory, the cache folder or the compiler.

    Attributes:
        folder: where object files are kept; None keeps them in memory only.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or default_folder()
        self._addresses: dict[str, int] = {}
        self._libraries: list[Any] = []  # keeps the code alive

    def missing(self, names: list[str]) -> list[str]:
        """Those of `names` that would have to be compiled."""
        return [n for n in names if n not in self._addresses and not self._file(n).exists()]

    def addresses(self, names: list[str], progress: Progress | None = None) -> dict[str, int]:
        """Machine addresses of opcodes (or of FUNCTIONS); compiles what is missing, telling `progress(done, total, name)`."""
        missing = self.missing(names)
        done = 0
        for name in names:
            if name not in self._addresses:
                self._addresses[name] = self._load(name) or self._compile(name)
            if name in missing:
                done += 1
                if progress is not None:
                    progress(done, len(missing), name)
        return {name: self._addresses[name] for name in names}

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.o"

    def _load(self, name: str) -> int | None:
        try:
            symbol, state = pickle.loads(self._file(name).read_bytes())
            library = cpu_target.target_context.codegen().unserialize_library(state)
        except (OSError, pickle.UnpicklingError, EOFError, ValueError, TypeError):
            return None
        return self._link(library, symbol)

    def _compile(self, name: str) -> int:
        function, signature = FUNCTIONS[name] if name in FUNCTIONS else (catalogue.make(name), executor.OPCODE_ARGS)
        function.compile(signature)
        compiled = function.overloads[signature]
        symbol = compiled.fndesc.llvm_func_name
        self._save(name, pickle.dumps((symbol, compiled.library.serialize_using_object_code())))
        return self._link(compiled.library, symbol)

    def _save(self, name: str, data: bytes) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
                file.write(data)
            Path(file.name).replace(self._file(name))
        except OSError:
            return  # read-only or full: the code in memory serves this process

    def _link(self, library: Any, symbol: str) -> int:
        self._libraries.append(library)
        return int(library.get_pointer_to_function(symbol))


def default_folder() -> Path:
    """The cache folder for this version of the kernels on this CPU."""
    root = os.environ.get("MODELC_CACHE") or user_cache_dir("modelc")
    return Path(root) / "kernels" / cache_key()


def cache_key() -> str:
    """Hash of everything that machine code depends on."""
    digest = hashlib.blake2b(digest_size=12)
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    codegen = cpu_target.target_context.codegen()
    cpu = os.environ.get("NUMBA_CPU_NAME") or llvmlite.binding.get_host_cpu_name()
    versions = (numba.__version__, llvmlite.__version__, cpu, codegen._tm_features)
    digest.update(repr(versions).encode())
    return digest.hexdigest()


def python_function(address: int, n_args: int, n_results: int) -> Callable[..., tuple[int, ...]]:
    """A Python callable for a compiled function of int64 arguments; the GIL is released while it runs.

    Numba's calling convention: (result*, exception**, arguments...) -> status.
    """
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * n_args)
    function = prototype(address)

    def call(*args: int) -> tuple[int, ...]:
        results = (ctypes.c_int64 * n_results)()
        exception = ctypes.c_void_p()
        status = function(ctypes.addressof(results), ctypes.addressof(exception), *args)
        assert status == 0, "kernels raise nothing"
        return tuple(results)

    return call
