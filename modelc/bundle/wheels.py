"""Packages for other systems and versions of Python: wheels of the versions that are installed here, by pip."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from modelc.bundle.package import Package, is_needed
from modelc.bundle.target import Target
from modelc.errors import NotFoundError
from modelc.settings import cache_folder


def wheel_files(package: Package, python: str, target: Target) -> dict[str, bytes]:
    """What a compiled file needs of a package, by path below the folder of packages.

    Raises:
        NotFoundError: there is no wheel, or it cannot be downloaded.
    """
    with zipfile.ZipFile(_wheel(package, python, target)) as wheel:
        return {name: wheel.read(name) for name in sorted(wheel.namelist()) if is_needed(name)}


def _wheel(package: Package, python: str, target: Target) -> Path:
    """The wheel, downloaded once."""
    kept = cache_folder() / "wheels" / f"{target.name}-{python}" / f"{package.name}-{package.version}"
    if found := sorted(kept.glob("*.whl")):
        return found[0]
    kept.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=kept.parent) as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--only-binary=:all:", "--implementation=cp", f"--python-version={python}", f"--dest={folder}"]
        command += [f"--abi=cp{python.replace('.', '')}", "--abi=abi3", "--abi=none"]
        command += [f"--platform={tag}" for tag in (*target.wheels, "any")]
        result = subprocess.run(
            [*command, f"{package.name}=={package.version}"], capture_output=True, text=True, check=False
        )
        found = sorted(Path(folder).glob("*.whl"))
        if result.returncode or not found:
            said = [line for line in result.stderr.splitlines() if line.startswith("ERROR")]
            raise NotFoundError(
                f"no wheel for Python {python} on {target.name}",
                param="package",
                expected=f"{package.name} {package.version}",
                got=said[-1].removeprefix("ERROR: ") if said else None,
                hint="it takes pip and the network; choose versions that have wheels there",
            )
        kept.mkdir(exist_ok=True)
        return found[0].replace(kept / found[0].name)
