"""From an interpreter that was given a compiled file to one that has modelc and what it needs."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import sys
from typing import Any, NoReturn

from . import cache, extensions
from .archive import Archive, Damaged
from .bytecode import compiled

REEXECUTED = "_MODELC_OTHER_PYTHON"  # set in the environment of the right interpreter, so that it is looked for once
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


def prepare(path: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Make the packages in the compiled file at `path` importable; every failure is one line and exit code 1.

    Returns:
        What the file says about itself, and the path of each file that it carries.
    """
    try:
        archive = Archive(path)
        payload = _fitting_payload(archive.manifest, path)
        if "--verify" in sys.argv[1:]:
            archive.verify()
        files = _files(archive, payload)
    except Damaged as error:
        _fail(path + ": " + str(error) + "; the file is damaged or not complete: copy it again")
    except MemoryError:
        _fail("not enough memory")
    except OSError as error:
        _fail((error.strerror or str(error)) + (": " + str(error.filename) if error.filename else ""))
    _isolate(files)
    signal.signal(signal.SIGTERM, lambda number, frame: os._exit(0))  # until the server has its own way to end
    return archive.manifest, files


def _fitting_payload(manifest: dict[str, Any], path: str) -> dict[str, Any]:
    """What this interpreter needs; another interpreter on this computer takes over where it fits and this does not."""
    machine = platform.machine().lower()
    machine = MACHINES.get(machine, machine)
    target = manifest["target"]
    if (sys.platform, machine) != (target["system"], target["machine"]):
        _fail("built for " + target["name"] + ", this computer is " + machine + " with " + sys.platform)
    here = ".".join(str(number) for number in sys.version_info[:2])
    payload: dict[str, Any] | None = manifest["payloads"].get(here)
    if payload is not None and sys.implementation.name == "cpython":
        return payload
    versions = list(manifest["payloads"])
    for version in versions:
        found = shutil.which("python" + version)
        if found and not os.environ.get(REEXECUTED):
            os.environ[REEXECUTED] = version
            os.execv(found, [found, "-I", "-S", path, *sys.argv[1:]])
    listed = " or ".join(versions)
    _fail(
        "built for CPython "
        + listed
        + ", this is "
        + sys.implementation.name
        + " "
        + here
        + "; install python"
        + versions[-1]
        + ", or compile the model with --python "
        + ",".join([*versions, here])
    )


def _files(archive: Archive, payload: dict[str, Any]) -> dict[str, str]:
    """Path of each file that the compiled file carries: in the cache folder, else in memory."""
    folder, reasons = cache.unpacked(archive, payload)
    if folder is not None:
        if "--verify" in sys.argv[1:]:
            cache.verify(folder, payload)
        return {place: os.path.join(folder, place) for place, *_ in payload["files"]}
    if not hasattr(os, "memfd_create"):
        _fail("no folder to unpack into; name one with MODELC_CACHE (" + "; ".join(reasons) + ")")

    def contents() -> Any:
        for place, member, size, digest in payload["files"]:
            content = archive.read(member, size, digest)
            yield place, compiled(content) if place == cache.MODULES and payload["sources"] else content

    return extensions.memory_files(contents())


def _isolate(files: dict[str, str]) -> None:
    """Import from this file and the standard library only, whatever is installed here."""
    start = len(extensions.LIBRARIES)
    libraries = {name[start:]: path for name, path in files.items() if name.startswith(extensions.LIBRARIES)}
    in_memory = files[cache.MODULES].startswith("/proc/")
    extensions.load_support(libraries, in_memory)
    kept = [folder for folder in sys.path[1:] if os.path.basename(folder) not in ("site-packages", "dist-packages")]
    sys.path[:] = [files[cache.MODULES], *kept]
    sys.meta_path.insert(0, extensions.Extensions(libraries, files[cache.MODULES]))


def _fail(message: str) -> NoReturn:
    sys.stderr.write("modelc: " + message + "\n")
    sys.exit(1)
