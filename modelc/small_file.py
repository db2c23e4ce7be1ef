"""Small text files that are replaced as a whole: what modelc notes down for itself."""

import contextlib
import secrets
from pathlib import Path


def replace_text(path: Path, text: str) -> None:
    """Write `text` to `path`, which never stands for half of it; its folder is made when it is missing.

    Raises:
        OSError: the system refuses to write.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        part.write_text(text, "utf-8")
        part.replace(path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
