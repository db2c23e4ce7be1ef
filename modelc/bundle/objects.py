"""Kernels as object files for any instruction set, compiled by fresh processes and kept in the cache folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
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
from modelc.kernels.objects import source_key
from modelc.kernels.source import Progress
from modelc.settings import cache_folder

PART = 12  # functions that one process compiles: it takes a second to start
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
    files = {(isa.name, name): folder / f"{name}-{_key(name, isa, triple, debug)}.o" for isa in isas for name in names}
    found = {what: data for what, file in files.items() if (data := kept(file)) is not None}
    missing = {isa: [name for name in names if (isa.name, name) not in found] for isa in isas}
    jobs = [(isa, part[at : at + PART]) for isa, part in missing.items() for at in range(0, len(part), PART)]
    total, done, lock = sum(len(part) for _, part in jobs), 0, threading.Lock()

    def compile_part(job: tuple[Isa, list[str]]) -> None:
        isa, part = job

        def note(name: str) -> None:
            nonlocal done
            with lock:
                done += 1
                if progress is not None:
                    progress(done, total, name)

        with TemporaryDirectory(prefix="modelc-") as scratch:
            made = _compile(part, isa, triple, debug, Path(scratch), note)
        for name, data in made.items():
            found[isa.name, name] = data
            keep(files[isa.name, name], data)

    with ThreadPoolExecutor(cpu_quota()) as pool:
        for _ in pool.map(compile_part, jobs):
            pass
    return found


def _compile(
    names: Sequence[str], isa: Isa, triple: str, debug: bool, folder: Path, note: Callable[[str], None]
) -> dict[str, bytes]:
    functions = [(name, symbol_of(name), str(folder / f"{number}.o")) for number, name in enumerate(names)]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_")}
    environment |= {
        "NUMBA_CPU_NAME": isa.cpu,
        "NUMBA_CPU_FEATURES": isa.llvm_features,
        "NUMBA_OPT": str(_level(debug)),
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path),
    }
    command = [sys.executable, "-m", EMIT]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    errors: list[str] = []
    reader = threading.Thread(target=lambda stream: errors.append(stream.read()), args=(process.stderr,))
    reader.start()
    with process:
        json.dump({"triple": triple, "optimisation": _level(debug), "functions": functions}, process.stdin)
        process.stdin.close()
        for line in process.stdout:
            note(line.strip())
        reader.join()
    if process.returncode:
        last = errors[0].strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
        raise ModelcError("kernels cannot be compiled", expected=f"code for {isa.name}", got=last[0])
    return {name: Path(file).read_bytes() for name, _, file in functions}


def _level(debug: bool) -> int:
    return 0 if debug else 3


def _key(name: str, isa: Isa, triple: str, debug: bool) -> str:
    versions = (
        metadata.version("numba"),
        metadata.version("llvmlite"),
        Path(__file__).with_name("emit.py").read_bytes(),
    )
    what = (versions, isa.cpu, isa.llvm_features, triple, _level(debug), source_key(*recipe(name)))
    return blake2b(repr(what).encode(), digest_size=12).hexdigest()
