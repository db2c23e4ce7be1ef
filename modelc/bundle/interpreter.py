"""This Python, to be taken along: its library, the standard library, and the shared libraries that both need."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES, FrozenImporter
from pathlib import Path
from tempfile import TemporaryDirectory

from modelc.bundle import tls_stub
from modelc.bundle.boot.embedded import EXTENSIONS, HOME, LIBRARY
from modelc.bundle.compiled_file import MAIN, starters
from modelc.bundle.elf import glibc_minor, needed_libraries, soname, without_sections
from modelc.bundle.loaded import loaded_library
from modelc.bundle.modules import HERE, compiled_modules, module_archive
from modelc.bundle.package import is_needed
from modelc.errors import NotFoundError, UnsupportedError

# Parts of the standard library that nothing asks for while a compiled file serves, as they begin.
LEFT_OUT_PARTS = (
    "__phello__",
    "config-",
    "curses/",
    "dbm/",
    "distutils/",
    "ensurepip/",
    "idlelib/",
    "lib-dynload/",
    "lib2to3/",
    "msilib/",
    "pydoc_data/",
    "site-packages/",
    "dist-packages/",
    "sqlite3/",
    "test/",
    "tkinter/",
    "turtle",
    "unittest/",
    "venv/",
    "xml/",
    "xmlrpc/",
)
# Extension modules that nothing asks for, or that are tried and done without.
LEFT_OUT_EXTENSIONS = re.compile(
    r"_?test.*|_xx.*|xx.*|_bz2|_codecs_.*|_crypt|_curses.*|_dbm|_elementtree|_gdbm|_hashlib|_lsprof|_lzma|"
    r"_multibytecodec|_sqlite3|_ssl|_tkinter|_uuid|audioop|nis|ossaudiodev|pyexpat|readline|spwd"
)
GLIBC = re.compile(r"(ld-linux.*|lib(c|m|mvec|dl|pthread|rt|util|resolv|anl))\.so\.\d+")
OPTIONS = ("-I", "-S", "-X", "utf8")  # of the launcher, see `launch`
_HINT = "compile without --format elf, or with a Python that has a shared library, like a distribution's"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter with its standard library.

    Attributes:
        version: like `3.11.7`.
        files: content by path in the archive.
        libraries: paths of the shared libraries to load, each behind those that it needs; the last one is Python's.
        glibc_minor: the least minor version of glibc 2 that all of them are content with.
    """

    version: str
    files: Mapping[str, bytes]
    libraries: tuple[str, ...]
    glibc_minor: int


def interpreter() -> Interpreter:
    """The Python that runs this.

    Raises:
        UnsupportedError: it cannot be taken along.
        NotFoundError: a part of it, or a library that it needs, is missing.
    """
    python = _shared_library()
    extensions = dict(_extensions())
    objects = {f"{HOME}{name}": content for name, content in _needed_of([python, *extensions.values()]).items()}
    objects[f"{HOME}{soname(python) or 'libpython.so'}"] = python
    modules = dict(_modules())
    first = {name: modules.pop(name) for name in _first_modules(modules)}
    stripped = {f"{EXTENSIONS}{name}": without_sections(content) for name, content in extensions.items()}
    return Interpreter(
        version=platform.python_version(),
        files={
            **{path: without_sections(content) for path, content in objects.items()},
            **compiled_modules({f"{HOME}{name}": content for name, content in first.items()}),
            LIBRARY: module_archive(modules | stripped, HERE),
        },
        libraries=tuple(objects),
        glibc_minor=max(glibc_minor(content) for content in (*objects.values(), *extensions.values())),
    )


def _shared_library() -> bytes:
    """Python's own library."""
    if sys.implementation.name != "cpython" or not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        raise UnsupportedError("Python", got=sys.executable, expected="CPython with a shared library", hint=_HINT)
    name = str(sysconfig.get_config_var("INSTSONAME"))
    base = Path(str(sysconfig.get_config_var("LIBDIR")))
    multiarch = str(sysconfig.get_config_var("MULTIARCH") or "")
    for folder in (base, base / multiarch, Path(sys.base_prefix, "lib")):
        if (folder / name).is_file():
            content = (folder / name).read_bytes()
            if platform.python_version().encode() in content:
                return content
    raise NotFoundError(
        "Python's shared library is not installed", param="Python", got=sys.executable, expected=name, hint=_HINT
    )


def _extensions() -> Iterator[tuple[str, bytes]]:
    """The standard library's extension modules by their names with the suffix."""
    folder = Path(str(sysconfig.get_config_var("DESTSHARED")))
    for path in sorted(folder.glob("*.so")):
        module = path.name.partition(".")[0]
        if path.name.endswith(tuple(EXTENSION_SUFFIXES)) and not LEFT_OUT_EXTENSIONS.fullmatch(module):
            yield path.name, path.read_bytes()


def _modules() -> Iterator[tuple[str, bytes]]:
    """The sources of the standard library's other modules, and its licence, by path."""
    library = Path(sysconfig.get_path("stdlib"))
    for place, folders, files in os.walk(library):
        start = "" if place == str(library) else f"{Path(place).relative_to(library).as_posix()}/"
        folders[:] = sorted(each for each in folders if not f"{start}{each}/".startswith(LEFT_OUT_PARTS))
        for name in sorted(f"{start}{file}" for file in files):
            is_wanted = name.endswith(".py") and not name.startswith(LEFT_OUT_PARTS) and is_needed(name)
            if is_wanted or name == "LICENSE.txt":
                yield name, Path(tls_stub.__file__ if name == "ssl.py" else library / name).read_bytes()


def _first_modules(modules: Collection[str]) -> list[str]:
    """Those of `modules`, by path, that are needed before `boot/embedded.py` can find the others."""
    with TemporaryDirectory(prefix="modelc-") as scratch:
        program = Path(scratch, "program.zip")
        with zipfile.ZipFile(program, "w") as archive:
            for name, content in (starters() | {MAIN: b"import modelc_boot.embedded"}).items():
                archive.writestr(name, content)
        command = [sys.executable, *OPTIONS, "-X", "importtime", str(program)]
        asked = subprocess.run(command, capture_output=True, text=True, check=True)
    names = [line.rpartition("|")[2].strip() for line in asked.stderr.splitlines() if line.startswith("import time:")]
    paths = {
        f"{name.replace('.', '/')}{end}" for name in names for end in (".py", "/__init__.py") if not _is_inside(name)
    }
    return sorted(paths.intersection(modules))


def _is_inside(name: str) -> bool:
    """Whether Python itself holds the module."""
    return FrozenImporter.find_spec(name) is not None


def _needed_of(objects: Iterable[bytes]) -> dict[str, bytes]:
    """Libraries that shared objects need beside glibc's and each other, each behind those that it needs itself."""
    found: dict[str, bytes] = {}
    for content in objects:
        for name in needed_libraries(content):
            if name not in found and not GLIBC.fullmatch(name) and not name.startswith("libpython"):
                library = _library(name)
                found |= {each: data for each, data in _needed_of([library]).items() if each not in found}
                found[name] = library
    return found


def _library(name: str) -> bytes:
    """A shared library as the system's loader finds it."""
    try:
        ctypes.CDLL(name)
    except OSError as error:
        raise NotFoundError(
            "Python needs a library that cannot be loaded", param="library", got=error, expected=name
        ) from None
    content = loaded_library(name)
    if content is None:
        raise NotFoundError("Python needs a library whose file is not found", param="library", expected=name)
    return content
