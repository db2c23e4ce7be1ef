"""Machine code of opcodes: compiled once, kept as object files in the user's cache folder, linked by address.

Numba's own cache never hits for functions whose closures hold other functions, and does not notice edits in imported
files; here the key is a hash of the function's module and of all that it imports from this package, of the CPU's
features and of the versions of Numba and llvmlite. Files are written to a temporary name and renamed, so several
processes may compile at once; without a writable folder everything is compiled in memory. Numba is imported only to
compile: a start with a full cache needs LLVM's loader alone, and nothing of it is imported before.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import re
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from modelc.kernels.catalogue import function, recipe
from modelc.kernels.companion import companion
from modelc.kernels.source import Progress
from modelc.settings import cache_folder

SLOW = ("attention.", "matmul.", "sample")  # to compile; they come first, so that two processes end together
SYMBOL_BYTES = 1024  # the file begins with the function's name, padded with zeros; the object file follows

COMPILER = ("lowering", "machine_code")  # modules that decide about the code of all functions
IMPORT = re.compile(rb"^ *from modelc\.kernels\.(\w+) import", re.MULTILINE)


class ObjectCache:
    """Addresses of compiled functions, from memory, the cache folder or the compiler.

    Attributes:
        folder: where object files are kept.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or default_folder()
        self._warned = False
        self._addresses: dict[str, int] = {}
        self._engines: list[Any] = []  # they own the code

    def addresses(self, names: Sequence[str], progress: Progress | None = None) -> dict[str, int]:
        """Machine addresses of opcodes and other functions (see `catalogue`).

        Args:
            names: what is wanted.
            progress: told (done, total, name) about each that had to be compiled.
        """
        missing = []
        for name in names:
            if name not in self._addresses:
                address = self._load(name)
                if address is None:
                    missing.append(name)
                else:
                    self._addresses[name] = address
        missing.sort(key=lambda name: not name.startswith(SLOW))
        with companion(missing, self.folder) as is_helped:
            for done, name in enumerate(missing):
                if progress is not None:
                    progress(done, len(missing), name)
                address = self._load(name) if is_helped else None
                self._addresses[name] = self._compile(name) if address is None else address
        if missing and progress is not None:
            progress(len(missing), len(missing), "")
        return {name: self._addresses[name] for name in names}

    def has(self, name: str) -> bool:
        """Whether the folder has the function."""
        return self._file(name).exists()

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}-{source_key(*recipe(name))}.o"

    def _load(self, name: str) -> int | None:
        try:
            data = self._file(name).read_bytes()
        except OSError:
            return None
        digest, body = data[:32], data[32:]
        if hashlib.blake2b(body, digest_size=32).digest() != digest:
            return None  # damaged: compiled again
        symbol = body[:SYMBOL_BYTES].rstrip(b"\0").decode()
        return self._link(symbol, body[SYMBOL_BYTES:])

    def _compile(self, name: str) -> int:
        symbol, code = self._object(name)
        body = symbol.encode().ljust(SYMBOL_BYTES, b"\0") + code
        self._save(name, hashlib.blake2b(body, digest_size=32).digest() + body)
        return self._link(symbol, code)

    def _object(self, name: str) -> tuple[str, bytes]:
        return compile_object(name)

    def _save(self, name: str, data: bytes) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
                temporary = Path(file.name)
                try:
                    file.write(data)
                    file.close()
                    temporary.replace(self._file(name))
                except OSError:
                    temporary.unlink(missing_ok=True)
        except OSError as error:  # read-only or full: the code in memory serves this process
            if not self._warned:
                self._warned = True
                logging.getLogger("modelc").warning("compiled kernels cannot be kept for the next start: %s", error)

    def _link(self, symbol: str, code: bytes) -> int:
        import llvmlite.binding as llvm

        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        self._engines.append(engine)
        return int(engine.get_function_address(symbol))


def compile_object(name: str) -> tuple[str, bytes]:
    """Compile a function of the catalogue for this computer; returns its symbol and the object file."""
    from modelc.kernels.lowering import lowered
    from modelc.kernels.machine_code import host_processor, object_file

    symbol, text = lowered(*function(name))
    return symbol, object_file(text, symbol, host_processor())


def _target_machine() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine()


def default_folder() -> Path:
    """The cache folder for this CPU and compiler."""
    return cache_folder() / "kernels" / cache_key()


def cache_key() -> str:
    """Hash of what all machine code depends on beside its source."""
    from modelc.kernels.machine_code import host_processor

    return _hash(repr((metadata.version("numba"), metadata.version("llvmlite"), host_processor())).encode())


@cache
def source_key(place: str, *arguments: str) -> str:
    """Hash of what a `recipe` of the catalogue is made of: its module, what compiles it, and what these import."""
    sources: dict[str, bytes] = {}
    wanted = [place.partition(":")[0], *COMPILER]
    while wanted:
        name = wanted.pop()
        if name not in sources:
            sources[name] = (Path(__file__).parent / f"{name}.py").read_bytes()
            wanted += [found.decode() for found in IMPORT.findall(sources[name])]
    return _hash(repr((place, arguments, sorted(sources.items()))).encode())


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def python_function(address: int, n_args: int, n_results: int) -> Callable[..., tuple[int, ...]]:
    """A Python callable for a compiled function of int64 arguments; the GIL is released while it runs.

    Numba's calling convention: (result*, exception**, arguments...) -> status.
    """
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * n_args)
    function = prototype(address)
    result_type = ctypes.c_int64 * max(n_results, 1)

    def call(*args: int) -> tuple[int, ...]:
        results, exception = result_type(), ctypes.c_void_p()
        status = function(ctypes.addressof(results), ctypes.addressof(exception), *args)
        assert status == 0, "kernels raise nothing"
        return tuple(results[:n_results])

    return call
