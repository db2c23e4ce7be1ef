"""A compiled file as an executable of its own: the launcher in front, and Python with its standard library inside.

0            the launcher, an ELF program; zeros up to the record
64 KiB - 256 the record (see `record`), by which the launcher finds and checks the rest
64 KiB       the weights, a `.modelc` file
…            the archive; first, without compression, Python's library, those that it needs, the standard library and
             what starts the file
"""

from __future__ import annotations

import io
import zipfile

from modelc.bundle.boot.bytecode import MEMBER_HEADER_BYTES
from modelc.bundle.compiled_file import MAIN, Beginning
from modelc.bundle.interpreter import Interpreter
from modelc.bundle.record import RECORD_AT, Span, record


def executable(launcher: bytes, interpreter: Interpreter, glibc_minor: int) -> Beginning:
    """The beginning of a compiled file that needs no Python.

    Args:
        launcher: the program.
        interpreter: the Python that it takes along.
        glibc_minor: the least minor version of glibc 2 that all that it carries is content with.
    """

    def head(archive: bytes, archive_at: int, file_bytes: int) -> bytes:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            spans = [_span(opened.getinfo(name)) for name in interpreter.libraries]
            last = _span(opened.getinfo(MAIN))
        plain = archive[: -(-(last.start + last.length) // 8) * 8]
        libraries = [Span(archive_at + span.start, span.length) for span in spans]
        before = launcher.ljust(RECORD_AT, b"\0")
        return before + record(before, file_bytes, glibc_minor, plain, archive_at, libraries)

    return Beginning(interpreter.files, head)


def _span(member: zipfile.ZipInfo) -> Span:
    """Where a member's content is in its archive."""
    return Span(member.header_offset + MEMBER_HEADER_BYTES + len(member.filename.encode()), member.file_size)
