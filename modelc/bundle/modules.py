"""The Python modules of a compiled file, in one zip archive: bytecode where the right Python is here to make it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

from modelc.bundle.boot import bytecode
from modelc.bundle.boot.interpreters import command_of
from modelc.bundle.kept import keep, kept
from modelc.errors import ModelcError
from modelc.settings import cache_folder

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


def module_archive(files: Mapping[str, bytes], python: str) -> bytes:
    """A zip archive of modules and their data, not compressed; sources where this computer lacks that Python.

    Args:
        files: content by path.
        python: the version that will read it, like `3.11`.

    Raises:
        ModelcError: a module is not for that version.
    """
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in sorted(files.items()):
            bytecode.add(archive, name, content, zipfile.ZIP_STORED)
    sources = made.getvalue()
    interpreter = interpreter_of(python)
    if interpreter is None:
        return sources
    program = Path(bytecode.__file__)
    key = blake2b(sources + program.read_bytes() + f"{python} {sys.version if python == HERE else ''}".encode())
    file = cache_folder() / "modules" / f"{python}-{key.hexdigest()[:24]}.zip"
    archived = kept(file)
    if archived is None:
        archived = _compile(interpreter, program, sources)
        keep(file, archived)
    return archived


def compiled_modules(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The members of their `module_archive` for this Python, by path: `.pyc` in the place of `.py`."""
    with zipfile.ZipFile(io.BytesIO(module_archive(files, HERE))) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name != bytecode.INDEX}


def interpreter_of(python: str) -> str | None:
    """The command of CPython `python` (like `3.12`) on this computer; None without one."""
    if python == HERE and sys.implementation.name == "cpython":
        return sys.executable
    return command_of(python)


def _compile(interpreter: str, program: Path, sources: bytes) -> bytes:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    result = subprocess.run(
        [interpreter, "-s", "-S", str(program)],
        input=sources,
        capture_output=True,
        check=False,
        env=environment | {"PYTHONHASHSEED": "0"},
    )
    if result.returncode:
        said = result.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise ModelcError("modules cannot be compiled", path=interpreter, got=said[0] if said else result.returncode)
    return result.stdout
