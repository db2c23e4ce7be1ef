"""From an interpreter that was given a compiled file to one that has modelc and what it needs."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, NoReturn

from . import cache, finder, libraries
from .archive import Archive, Damaged

REEXECUTED = "_MODELC_OTHER_PYTHON"  # set in the environment of the right interpreter, so that it is looked for once
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
INTERRUPTED = 128 + signal.SIGINT


def prepare(path: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Make the packages in the compiled file at `path` importable; every failure is one line and exit code 1.

    Until the server has its own way to end, SIGTERM ends the process with 0, and SIGINT with 130.

    Returns:
        What the file says about itself, and the path of each file that it carries.
    """
    _on_signals(_clean_up)
    try:
        archive = Archive(path)
        payload = _fitting_payload(archive.manifest, path)
        if "--verify" in sys.argv[1:]:
            archive.verify()
        files = _files(archive, payload)
    except Damaged as error:
        _fail(str(error))
    except MemoryError:
        _fail("not enough memory")
    except RuntimeError as error:  # of threads
        _fail(str(error) + ": the system allows no more (ulimit -u)")
    except OSError as error:
        _fail((error.strerror or str(error)) + (": " + str(error.filename) if error.filename else ""))
    _isolate(files)
    _on_signals(_end)
    return archive.manifest, files


def _fitting_payload(manifest: dict[str, Any], path: str) -> dict[str, Any]:
    """What this interpreter needs; another interpreter on this computer takes over where it fits and this does not."""
    machine = _machine()
    target = manifest["target"]
    if (sys.platform, machine) != (target["system"], target["machine"]):
        _fail("built for " + target["name"] + ", this computer is " + machine + " with " + sys.platform)
    here = ".".join(str(number) for number in sys.version_info[:2])
    payload: dict[str, Any] | None = manifest["payloads"].get(here)
    if payload is not None and sys.implementation.name == "cpython":
        return payload
    versions = list(manifest["payloads"])
    if not os.environ.get(REEXECUTED):
        from .interpreters import command_of

        for version in versions:
            if found := command_of(version):
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


def _machine() -> str:
    if hasattr(os, "uname"):
        machine = os.uname().machine
    else:
        import platform

        machine = platform.machine().lower()
    return MACHINES.get(machine, machine)


def _files(archive: Archive, payload: dict[str, Any]) -> dict[str, str]:
    """Path of each file that the compiled file carries: in the cache folder, else in memory."""
    folder, reasons = cache.unpacked(archive, payload)
    if folder is not None:
        if "--verify" in sys.argv[1:]:
            cache.verify(folder, payload)
        return {place: os.path.join(folder, place) for place, *_ in payload["files"]}
    if not hasattr(os, "memfd_create"):
        _fail("no folder to unpack into; name one with MODELC_CACHE (" + "; ".join(reasons) + ")")
    return libraries.memory_files(cache.contents(archive, payload))


def _isolate(files: dict[str, str]) -> None:
    """Import from this file and the standard library only, whatever is installed here."""
    start = len(libraries.LIBRARIES)
    objects = {name[start:]: path for name, path in files.items() if name.startswith(libraries.LIBRARIES)}
    libraries.load_support(objects, in_memory=files[cache.MODULES].startswith("/proc/"))
    sys.path[:] = [
        folder for folder in sys.path[1:] if os.path.basename(folder) not in ("site-packages", "dist-packages")
    ]
    sys.meta_path.insert(0, finder.Finder(finder.Modules(files[cache.MODULES]), objects))


def _on_signals(handler: Any) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:  # as whoever started the process wants it
            signal.signal(number, handler)


def _clean_up(number: int, frame: object) -> NoReturn:
    """End after what is half done has been removed."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    sys.exit(_exit_code(number))


def _end(number: int, frame: object) -> NoReturn:
    os._exit(_exit_code(number))


def _exit_code(number: int) -> int:
    if number == signal.SIGTERM:
        return 0
    os.write(2, b"modelc: interrupted\n")
    return INTERRUPTED


def _fail(message: str) -> NoReturn:
    sys.stderr.write("modelc: " + message + "\n")
    sys.exit(1)
