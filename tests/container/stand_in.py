"""A compiled file in form: a `.modelc` 64 KiB behind a first line for the shell, then a zip archive with a program."""

import io
import zipfile
from pathlib import Path

from modelc.formats.modelc.compiled import START


def compiled_file(path: Path, packed: bytes, program: str = "") -> Path:
    """Write it."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as content:
        content.writestr("__main__.py", program)
    path.write_bytes(b"#!/usr/bin/env python3\n".ljust(START, b"\n") + packed + archive.getvalue())
    return path
