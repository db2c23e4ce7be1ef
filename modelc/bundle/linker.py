"""From object files to a shared library: Zig's linker for every target, the system's own for this one."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from tempfile import TemporaryDirectory

from modelc.bundle import macho, pe
from modelc.bundle.elf import undefined_symbols
from modelc.bundle.target import Target
from modelc.errors import ModelcError, NotFoundError

# What compiled kernels may ask of the process that loads them: the C library's, which every Python has loaded.
_C_LIBRARY = frozenset({"memset", "memcpy", "memmove", "sched_yield", "usleep"})
KERNEL_SYMBOLS: Mapping[str, Set[str]] = {
    "linux": _C_LIBRARY,
    "darwin": _C_LIBRARY | {"bzero", "memset_pattern4", "memset_pattern8", "memset_pattern16", "dyld_stub_binder"},
    "win32": {
        *(f"KERNEL32.dll:{name}" for name in ("Sleep", "SwitchToThread")),
        *(f"NTDLL.dll:{name}" for name in ("memset", "memcpy", "memmove")),
    },
}
_NEEDED: Mapping[str, Callable[[bytes], set[str]]] = {
    "linux": undefined_symbols,
    "darwin": macho.undefined_symbols,
    "win32": pe.imported_symbols,
}
_INSTALL = "pip install 'modelc[compile]' brings one"


def link(
    objects: Mapping[str, bytes],
    target: Target,
    soname: str,
    debug: bool = False,
    allowed: Set[str] | None = None,
) -> bytes:
    """Link object files into a shared library; the same bytes for the same objects and linker.

    Args:
        objects: object files by a name that is a part of a file name.
        target: where the library will be loaded.
        soname: what it calls itself.
        debug: keep the symbols of what is not exported.
        allowed: what it may ask of the process that loads it; None for what kernels may.

    Raises:
        NotFoundError: no linker for the target.
        ModelcError: the linker refused, the library needs a symbol that is not expected, or macOS would not load it.
    """
    libraries = ("-lkernel32", "-lntdllcrt") if target.system == "win32" else ()
    library = _linked(objects, target, _options(target, soname, debug), libraries)
    if unexpected := _NEEDED[target.system](library) - (KERNEL_SYMBOLS[target.system] if allowed is None else allowed):
        raise ModelcError("a linked library needs what may not be there", got=", ".join(sorted(unexpected)))
    if target.system == "darwin" and not macho.is_signed(library):
        raise ModelcError("the linker did not sign the library", hint="use the linker of ziglang")
    return library


def link_program(objects: Mapping[str, bytes], target: Target, libraries: Sequence[str]) -> bytes:
    """Link object files, one with `main`, into a program that uses the C library; the same bytes every time.

    Args:
        objects: object files by a name that is a part of a file name.
        target: where the program will run.
        libraries: names of further libraries, like `dl`.

    Raises:
        NotFoundError: no linker for the target.
        ModelcError: the linker refused.
    """
    options = ["-s", "-Wl,--build-id=none", "-Wl,-z,noexecstack"]
    return _linked(objects, target, options, [f"-l{library}" for library in libraries])


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


def _linked(objects: Mapping[str, bytes], target: Target, options: Sequence[str], libraries: Sequence[str]) -> bytes:
    with TemporaryDirectory(prefix="modelc-") as folder:
        files = []
        for number, name in enumerate(sorted(objects)):
            files.append(f"{number}.o")
            Path(folder, files[-1]).write_bytes(objects[name])
        output = f"linked{target.library_suffix}"
        _run([*linker_command(target), *options, "-o", output, *files, *libraries], folder)
        return Path(folder, output).read_bytes()


def _run(command: Sequence[str], folder: str) -> None:
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
    else:  # nor here
        options += ["-nostdlib", "-O2", str(Path(__file__).with_name("windows.c"))]
    return options
