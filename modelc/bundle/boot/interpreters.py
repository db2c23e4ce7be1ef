"""Other versions of CPython on this computer, by their names."""

from __future__ import annotations

QUESTION = "import sys; print(sys.implementation.name, '%d.%d' % sys.version_info[:2])"


def command_of(version: str) -> str | None:
    """The command of CPython `version` (like `3.12`); None without one that answers by that name."""
    import shutil
    import subprocess

    found = shutil.which("python" + version)
    if found is None:
        return None
    try:
        asked = subprocess.run([found, "-I", "-S", "-c", QUESTION], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return found if asked.stdout.strip() == "cpython " + version else None
