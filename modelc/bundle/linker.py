"""From object files to a shared library: Zig's linker for every target, the system's own for this one."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from tempfile import TemporaryDirectory

from modelc.bundle.elf import undefined_symbols
from modelc.bundle.target import Target
from modelc.errors import ModelcError, NotFoundError

# What compiled kernels may ask of the process that loads them: the C library's, which every Python has loaded.
KERNEL_SYMBOLS = frozenset({"memset", "memcpy", "memmove", "sched_yield", "usleep", "fmaf"})
_INSTALL = "pip install 'modelc[compile]' brings one"


def link(
    objects: Mapping[str, bytes],
    target: Target,
    soname: str,
    debug: bool = False,
    allowed: Set[str] = KERNEL_SYMBOLS,
) -> bytes:
    """Link object files into a shared library; the same bytes for the same objects and linker.

    Args:
        objects: object files by a name that is a part of a file name.
        target: where the library will be loaded.
        soname: what it calls itself.
        debug: keep the symbols of what is not exported.
        allowed: what it may ask of the process that loads it; checked on Linux.

    Raises:
        NotFoundError: no linker for the target.
        ModelcError: the linker refused, or the library needs a symbol that is not expected.
    """
    with TemporaryDirectory(prefix="modelc-") as folder:
        files = []
        for number, name in enumerate(sorted(objects)):
            files.append(f"{number}.o")
            Path(folder, files[-1]).write_bytes(objects[name])
        output = f"library{target.library_suffix}"
        command = [*linker_command(target), *_options(target, soname, debug), "-o", output, *files]
        run_tool(command, folder)
        library = Path(folder, output).read_bytes()
    if target.system == "linux" and (unexpected := undefined_symbols(library) - allowed):
        raise ModelcError("a linked library needs what may not be there", got=", ".join(sorted(unexpected)))
    return library


def linker_command(target: Target) -> list[str]:
    """The command that links like a C compiler, without options.

    Raises:
        NotFoundError: none is installed.
    """
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc", "-target", target.zig]
    if target.is_host:
        for name in ("cc", "gcc", "clang"):
            if found := shutil.which(name):
                return [found]
    where = "" if target.is_host else f" for {target.name}"
    raise NotFoundError(f"no linker{where}", expected="ziglang, or for this system cc, gcc or clang", hint=_INSTALL)


def run_tool(command: Sequence[str], folder: str) -> None:
    """Run a linker or compiler in `folder`.

    Raises:
        ModelcError: it failed; with the first thing that it says.
    """
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode:
        said = (result.stderr or result.stdout).strip().splitlines() or [f"exit code {result.returncode}"]
        raise ModelcError("the linker failed", path=command[0], got=next((s for s in said if "error" in s), said[0]))


def _options(target: Target, soname: str, debug: bool) -> list[str]:
    options = ["-shared"] if debug else ["-shared", "-s"]
    if target.system == "linux":  # nothing is linked in: the process has a C library, of whatever kind
        options += ["-nostdlib", "-Wl,--build-id=none", f"-Wl,-soname,{soname}", "-Wl,-z,noexecstack"]
    elif target.system == "darwin":
        options += [f"-Wl,-install_name,@rpath/{soname}"]
    return options
