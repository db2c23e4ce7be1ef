"""Kernels as object files for any instruction set, compiled by fresh processes and kept in the cache folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple
from hashlib import blake2b
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from modelc.bundle.isas import Isa
from modelc.bundle.kept import keep, kept
from modelc.cpu_quota import cpu_quota
from modelc.errors import ModelcError
from modelc.kernels.catalogue import recipe
from modelc.kernels.library import symbol_of
from modelc.kernels.machine_code import Processor
from modelc.kernels.objects import SLOW, source_key
from modelc.kernels.source import Progress
from modelc.settings import cache_folder

LEAST = 4  # functions that a process of their own compiles: it takes a second to start
EMIT = "modelc.bundle.emit"  # the program


def object_files(
    names: Sequence[str], isas: Sequence[Isa], triple: str, debug: bool = False, progress: Progress | None = None
) -> dict[tuple[str, str], bytes]:
    """Object files by instruction set and function; each defines `symbol_of` its function.

    Args:
        names: of the catalogue.
        isas: instruction sets of the triple's machine.
        triple: LLVM's name of the target.
        debug: leave the code as it is written, and slow.
        progress: told (done, total, name) about each that had to be compiled.

    Raises:
        ModelcError: a compiler process failed.
    """
    folder = cache_folder() / "kernels" / "ahead"
    files = {
        (isa.name, name): folder / f"{name}-{_key(name, processor_of(isa, triple), debug)}.o"
        for isa in isas
        for name in names
    }
    found = {what: data for what, file in files.items() if (data := kept(file)) is not None}
    missing = {name: [isa for isa in isas if (isa.name, name) not in found] for name in names}
    wanted = sorted((name for name in names if missing[name]), key=lambda name: (not name.startswith(SLOW), name))
    n_parts = min(cpu_quota(), -(-len(wanted) // LEAST))
    total, done, lock = sum(len(isas) for isas in missing.values()), 0, threading.Lock()

    def compile_part(part: list[str]) -> None:
        def note(name: str) -> None:
            nonlocal done
            with lock:
                done += 1
                if progress is not None:
                    progress(done, total, name)

        with TemporaryDirectory(prefix="modelc-") as scratch:
            made = _compile({name: missing[name] for name in part}, triple, debug, Path(scratch), note)
        for what, data in made.items():
            found[what] = data
            keep(files[what], data)

    with ThreadPoolExecutor(n_parts or 1) as pool:
        for _ in pool.map(compile_part, [wanted[part::n_parts] for part in range(n_parts)]):
            pass
    return found


def _compile(
    wanted: Mapping[str, Sequence[Isa]], triple: str, debug: bool, folder: Path, note: Callable[[str], None]
) -> dict[tuple[str, str], bytes]:
    files = {(isa.name, name): folder / f"{name}-{isa.name}.o" for name, isas in wanted.items() for isa in isas}
    compile_functions(
        [
            (name, symbol_of(name), [(processor_of(isa, triple), files[isa.name, name]) for isa in isas])
            for name, isas in wanted.items()
        ],
        debug,
        note,
    )
    return {what: file.read_bytes() for what, file in files.items()}


def compile_functions(
    functions: Sequence[tuple[str, str, Sequence[tuple[Processor, Path]]]], debug: bool, note: Callable[[str], None]
) -> None:
    """Compile functions in a fresh process.

    Args:
        functions: of each its name as `emit` takes it, its symbol, and for each processor the object file to write.
        debug: leave the code as it is written, and slow.
        note: told a function's name for each file that is written.

    Raises:
        ModelcError: the compiler process failed.
    """
    job = [
        (name, symbol, [(astuple(processor), str(file)) for processor, file in outputs])
        for name, symbol, outputs in functions
    ]
    environment = os.environ | {"PYTHONHASHSEED": "0", "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
    command = [sys.executable, "-m", EMIT]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    errors: list[str] = []
    reader = threading.Thread(target=lambda stream: errors.append(stream.read()), args=(process.stderr,))
    reader.start()
    with process:
        json.dump({"level": _level(debug), "functions": job}, process.stdin)
        process.stdin.close()
        for line in process.stdout:
            note(line.strip())
        reader.join()
    if process.returncode:
        last = errors[0].strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
        raise ModelcError("kernels cannot be compiled", got=last[0])


def processor_of(isa: Isa, triple: str) -> Processor:
    """What machine code for an instruction set is made for."""
    return Processor(triple, isa.cpu, isa.llvm_features)


def _level(debug: bool) -> int:
    return 0 if debug else 3


def _key(name: str, processor: Processor, debug: bool) -> str:
    versions = (metadata.version("numba"), metadata.version("llvmlite"))
    return blake2b(
        repr((versions, processor, _level(debug), source_key(*recipe(name)))).encode(), digest_size=12
    ).hexdigest()
