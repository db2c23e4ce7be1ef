"""An AArch64 Linux with CPython on this computer: Debian's packages in a cache folder, run by QEMU's user emulation.

Nothing is installed: apt downloads into a folder of its own, and what it downloads is only unpacked there.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from modelc.bundle.modules import HERE
from modelc.settings import cache_folder

QEMU = ("qemu-aarch64", "qemu-aarch64-static")
PYTHON_PACKAGES = (f"python{HERE}-minimal", f"libpython{HERE}-stdlib")
CPP_PACKAGE = "libstdc++6"
# A processor of QEMU's for each instruction set that has no more than it asks for.
PROCESSORS = {"neon": "cortex-a53", "dotprod": "neoverse-n1"}


class Unavailable(Exception):
    """There is no such machine to be had here; the text says why."""


@dataclass(frozen=True, slots=True)
class Machine:
    """An emulated computer.

    Attributes:
        qemu: the emulator.
        root: the folder that is its root.
    """

    qemu: Path
    root: Path

    def python(self, processor: str = "max") -> list[str]:
        """The command that runs its Python, without packages and environment, on one of QEMU's processors."""
        return [str(self.qemu), "-cpu", processor, "-L", str(self.root), str(_python(self.root)), "-I", "-S"]


def machine() -> Machine:
    """The machine, downloaded once.

    Raises:
        Unavailable: without apt and dpkg, the network, or packages of this version of Python.
    """
    folder = cache_folder() / "conformance"
    packages = [*PYTHON_PACKAGES, CPP_PACKAGE]
    root = _unpacked(folder / f"aarch64-python{HERE}", packages, "arm64", f"usr/bin/python{HERE}")
    found = next((Path(path) for name in QEMU if (path := shutil.which(name))), None)
    if found is None:
        emulator = _unpacked(folder / "qemu", ["qemu-user-static"], None, f"usr/bin/{QEMU[1]}")
        found = emulator / "usr" / "bin" / QEMU[1]
    made = Machine(found, root)
    asked = subprocess.run(
        [*made.python(), "-c", "import platform; print(platform.machine())"],
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.stdout.strip() != "aarch64":
        raise Unavailable(f"{found.name} does not run: {_last_line(asked)}")
    return made


def _python(root: Path) -> Path:
    return root / "usr" / "bin" / f"python{HERE}"


def _unpacked(folder: Path, packages: list[str], architecture: str | None, proof: str) -> Path:
    """A folder with packages and all that they depend on; `proof` is a file that is there when it is complete."""
    if (folder / proof).is_file():
        return folder
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise Unavailable(f"{', '.join(packages)} would come from Debian packages, and there is no {tool}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent) as scratch:
        root = Path(scratch, "root")
        for package in _download(Path(scratch), packages, architecture):
            _run(["dpkg-deb", "--extract", str(package), str(root)])
        if not (root / proof).is_file():
            raise Unavailable(f"{', '.join(packages)} bring no {proof}")
        shutil.rmtree(folder, ignore_errors=True)
        root.rename(folder)
    return folder


def _download(folder: Path, packages: list[str], architecture: str | None) -> list[Path]:
    """Package files, of the system's own sources, for a computer that has no package yet."""
    status = folder / "status"
    status.touch()
    for place in ("state/lists/partial", "cache/archives/partial"):
        (folder / place).mkdir(parents=True)
    settings = {
        "Dir::State": folder / "state",
        "Dir::State::status": status,
        "Dir::Cache": folder / "cache",
        "Debug::NoLocking": 1,
    }
    if architecture is not None:
        settings |= {"APT::Architecture": architecture, "APT::Architectures": architecture}
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in settings.items())]
    _run([*apt, "update"])
    _run([*apt, "--yes", "--no-install-recommends", "--download-only", "install", *packages])
    return sorted((folder / "cache" / "archives").glob("*.deb"))


def _run(command: list[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise Unavailable(f"{command[0]}: {_last_line(result)}")


def _last_line(result: subprocess.CompletedProcess[str]) -> str:
    said = (result.stderr or result.stdout).strip().splitlines()
    return said[-1] if said else f"exit code {result.returncode}"
