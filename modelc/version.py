"""Version and git commit of this installation."""

import functools
from pathlib import Path

__version__ = "0.1.0"
UNKNOWN = "unknown"


@functools.cache
def git_sha() -> str:
    """Return the 12 hex digits of the commit modelc was built from, or "unknown".

    A wheel carries them in `git_sha.txt`, written when it is built; a working tree asks git.
    """
    import pkgutil  # a tenth of the time of importlib.resources, which reads the directory of an archive first

    try:
        found = (pkgutil.get_data("modelc", "git_sha.txt") or b"").decode("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return sha_of_checkout(Path(__file__).parent.parent)
    return found or UNKNOWN


def version_line() -> str:
    """Return `modelc <version> (git <sha>)`."""
    return f"modelc {__version__} (git {git_sha()})"


def sha_of_checkout(root: Path) -> str:
    """Return what git says of the working tree at `root`; "unknown" without git or outside a tree."""
    import subprocess

    if not (root / ".git").exists():  # else git would answer for a repository that merely surrounds site-packages
        return UNKNOWN
    command = ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return UNKNOWN
    return found.stdout.strip() if found.returncode == 0 else UNKNOWN
