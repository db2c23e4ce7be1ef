"""The environment of clients that modelc does not depend on: made once, beside the repository's own."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

REQUIREMENTS = Path(__file__).with_name("clients.txt")
FOLDER = Path(__file__).parents[2] / ".clients"
INSTALL_S = 1200


@cache
def clients_python() -> Path:
    """Its Python; the test is skipped where it cannot be made (no network)."""
    python, done = FOLDER / "bin" / "python", FOLDER / "installed"
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    if done.exists() and done.read_text() == wanted:
        return python
    try:
        subprocess.run([sys.executable, "-m", "venv", FOLDER], check=True, capture_output=True)
        install = [python, "-m", "pip", "install", "--quiet", "--requirement", REQUIREMENTS]
        subprocess.run(install, check=True, capture_output=True, timeout=INSTALL_S)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"no environment for clients: {error}")
    done.write_text(wanted)
    return python


def run_client(*arguments: str | Path, timeout_s: float = 300) -> str:
    """Run a program in that environment, and return what it printed."""
    command = [str(clients_python()), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
