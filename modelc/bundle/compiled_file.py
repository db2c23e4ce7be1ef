"""Writes a compiled file: what starts it, the weights, and a zip archive with all that serving them takes.

See `boot/archive.py` for the layout. The same input gives the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modelc.bundle import boot
from modelc.bundle.boot import archive as layout
from modelc.bundle.boot import bytecode
from modelc.bundle.boot.cache import MODULES
from modelc.bundle.boot.unused import ID_CHARS
from modelc.bundle.modules import compiled_modules
from modelc.formats.atomic import atomic_write, refuse_overwriting
from modelc.formats.modelc.compiled import START

BOOT = "modelc_boot"
PROGRAM = f"{BOOT}/main.txt"
# What Python runs, and the last of what is used in place. It checks what it runs itself, and is so short that damage
# hardly ever hits it.
MAIN = "__main__.py"
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


@dataclass(frozen=True, slots=True)
class Beginning:
    """How a compiled file begins, and what of it is used in place.

    Attributes:
        files: what comes first in the archive, as it is, by path.
        head: the first 64 KiB or less, from the archive, where it begins in the file, and the file's length.
    """

    files: Mapping[str, bytes]
    head: Callable[[bytes, int, int], bytes]


def by_shell(pythons: Sequence[str]) -> Beginning:
    """A program for the shell, which finds Python; nothing but the starter is used in place."""
    names = [f"python{version}" for version in pythons]
    marks = {"@PYTHONS@": " ".join(names), "@NEEDED@": "-or-".join(names)}
    return Beginning({}, lambda archive, archive_at, size: _filled("front.txt", {**marks, "@SIZE@": size}))


def write_compiled(
    output: Path,
    weights: Path,
    manifest: Mapping[str, Any],
    payloads: list[Payload],
    beginning: Beginning,
) -> None:
    """Write a compiled file; `output` never stands for half of it.

    Args:
        output: the file to create or replace.
        weights: a plain `.modelc`.
        manifest: what the file says about itself; the payloads are added.
        payloads: one for each version of Python.
        beginning: how it begins.

    Raises:
        BadInputError: `output` cannot be a file.
        WriteError: the system refuses to write.
    """
    assert START == layout.WEIGHTS_AT, "the reader and the starter agree"
    refuse_overwriting(weights, output)
    tail = _archive(manifest, payloads, beginning.files)
    archive_at = START + weights.stat().st_size
    head = beginning.head(tail, archive_at, archive_at + len(tail) + layout.COMMENT_BYTES).ljust(START, b"\0")
    comment = hashlib.sha256(head).hexdigest() + hashlib.sha256(tail).hexdigest()
    with atomic_write(output) as file:
        file.write(head)
        with weights.open("rb") as source:
            shutil.copyfileobj(source, file, 1 << 24)
        file.write(tail)
        file.write(comment.encode())
        Path(file.name).chmod(0o755)


def starters() -> dict[str, bytes]:
    """The modules that start the file, as sources for any Python and as bytecode for this one."""
    folder = Path(boot.__file__).parent
    sources = {f"{BOOT}/{file.name}": file.read_bytes() for file in sorted(folder.glob("*.py"))}
    return sources | compiled_modules(sources)


def _archive(manifest: Mapping[str, Any], payloads: list[Payload], in_place: Mapping[str, bytes]) -> bytes:
    """The zip archive up to its comment: first what is used in place."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        program = starters()
        program[PROGRAM] = _program(program, [payload.python for payload in payloads])
        program[MAIN] = _filled("first.txt", {"@PROGRAM@": PROGRAM, "@CHECKSUM@": zlib.crc32(program[PROGRAM])})
        for name, content in (*in_place.items(), *program.items()):
            bytecode.add(archive, name, content, zipfile.ZIP_STORED)
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
            identity = hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:ID_CHARS]
            described[payload.python] = {"id": identity, "sources": payload.is_source, "files": rows}
        whole = {"format": FORMAT, **manifest, "payloads": described}
        text = json.dumps(whole, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        bytecode.add(archive, layout.MANIFEST, text.encode(), zipfile.ZIP_DEFLATED)
        archive.comment = bytes(layout.COMMENT_BYTES)
    return made.getvalue()[: -layout.COMMENT_BYTES]


def _program(starters: Mapping[str, bytes], versions: Sequence[str]) -> bytes:
    digest = hashlib.sha256(b"".join(starters.values())).hexdigest()
    marks = {"@VERSIONS@": " or ".join(versions), "@BOOT@": list(starters), "@DIGEST@": digest}
    return _filled("main.txt", {mark: repr(value) for mark, value in marks.items()})


def _filled(name: str, marks: Mapping[str, object]) -> bytes:
    """A text of the starter with something in the place of each mark."""
    text = Path(boot.__file__).with_name(name).read_text("utf-8")
    for mark, value in marks.items():
        text = text.replace(mark, str(value))
    return text.encode()
