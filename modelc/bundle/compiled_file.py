"""Writes a compiled file: what starts it, the weights, and a zip archive with all that serving them takes.

See `boot/archive.py` for the layout. The same input gives the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modelc.bundle import boot
from modelc.bundle.boot import archive as layout
from modelc.bundle.boot import bytecode
from modelc.bundle.boot.cache import MODULES
from modelc.bundle.modules import HERE, module_archive
from modelc.errors import BadInputError
from modelc.formats.atomic import atomic_write
from modelc.formats.modelc.compiled import START

SHELL_LINE = b"#!/usr/bin/env python3\n"
BOOT = "modelc_boot"
FORMAT = 1  # of the manifest


@dataclass(frozen=True, slots=True)
class Payload:
    """What one version of Python needs.

    Attributes:
        python: like `3.11`.
        modules: a zip archive of its modules (see `modules`).
        is_source: whether they are sources, to be compiled where they are unpacked.
        files: shared objects by where they go.
    """

    python: str
    modules: bytes
    is_source: bool
    files: Mapping[str, bytes]


def write_compiled(
    output: Path, weights: Path, manifest: Mapping[str, Any], payloads: list[Payload], head: bytes = SHELL_LINE
) -> None:
    """Write a compiled file; `output` never stands for half of it.

    Args:
        output: the file to create or replace.
        weights: a plain `.modelc`.
        manifest: what the file says about itself; the payloads are added.
        payloads: one for each version of Python.
        head: how the file begins, at most 64 KiB.

    Raises:
        BadInputError: `output` cannot be a file.
        WriteError: the system refuses to write.
    """
    assert START == layout.WEIGHTS_AT, "the reader and the starter agree"
    if output.exists() and output.samefile(weights):
        raise BadInputError("the output is the model itself", param="--output", got=output)
    tail = _archive(manifest, payloads)
    beginning = head.ljust(START, b"\0")
    comment = hashlib.sha256(beginning).hexdigest() + hashlib.sha256(tail).hexdigest()
    with atomic_write(output) as file:
        file.write(beginning)
        with weights.open("rb") as source:
            shutil.copyfileobj(source, file, 1 << 24)
        file.write(tail)
        file.write(comment.encode())
        Path(file.name).chmod(0o755)


def _archive(manifest: Mapping[str, Any], payloads: list[Payload]) -> bytes:
    """The zip archive up to its comment."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        described: dict[str, Any] = {}
        members: dict[str, str] = {}  # by SHA-256: what several versions of Python share is there once
        for payload in payloads:
            files = {MODULES: payload.modules, **payload.files}
            rows = []
            for place, content in sorted(files.items()):
                digest = hashlib.sha256(content).hexdigest()
                if digest not in members:
                    members[digest] = f"{payload.python}/{place}"
                    bytecode.add(archive, members[digest], content, zipfile.ZIP_DEFLATED)
                rows.append((place, members[digest], len(content), digest))
            identity = hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:32]
            described[payload.python] = {"id": identity, "sources": payload.is_source, "files": rows}
        whole = {"format": FORMAT, **manifest, "payloads": described}
        text = json.dumps(whole, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        bytecode.add(archive, layout.MANIFEST, text.encode(), zipfile.ZIP_DEFLATED)
        starters = _starters()
        for name, content in starters.items():
            bytecode.add(archive, name, content, zipfile.ZIP_STORED)
        bytecode.add(archive, "__main__.py", _main_program(starters, list(described)), zipfile.ZIP_STORED)
        archive.comment = bytes(layout.COMMENT_BYTES)
    return made.getvalue()[: -layout.COMMENT_BYTES]


def _starters() -> dict[str, bytes]:
    """The modules that start the file, as sources for any Python and as bytecode for this one."""
    folder = Path(boot.__file__).parent
    sources = {f"{BOOT}/{file.name}": file.read_bytes() for file in sorted(folder.glob("*.py"))}
    with zipfile.ZipFile(io.BytesIO(module_archive(sources, HERE))) as archive:
        return sources | {name: archive.read(name) for name in archive.namelist()}


def _main_program(starters: Mapping[str, bytes], versions: list[str]) -> bytes:
    text = Path(boot.__file__).with_name("main.txt").read_text("utf-8")
    content = b"".join(starters.values())
    for mark, value in (
        ("@VERSIONS@", " or ".join(versions)),
        ("@BOOT@", list(starters)),
        ("@DIGEST@", hashlib.sha256(content).hexdigest()),
    ):
        text = text.replace(mark, repr(value))
    return text.encode()
