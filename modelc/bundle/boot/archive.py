"""The zip archive at the end of a compiled file: its manifest, its members, and the checks of all of it.

0       a program for the shell (or an executable's launcher), zeros up to 64 KiB
64 KiB  the weights, a `.modelc` file
…       the archive; its comment has the SHA-256 of the first 64 KiB and of the archive up to the comment
"""

from __future__ import annotations

import hashlib
import json
import zipimport
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

WEIGHTS_AT = 1 << 16
WEIGHTS_LENGTH_AT = WEIGHTS_AT + 24  # the field of the `.modelc` that says how long it is
MANIFEST = "manifest.json"
COMMENT_BYTES = 2 * 64
END_BYTES = 22  # of the record in front of the comment; source: APPNOTE.TXT 6.3.10, 4.3.16
END = b"PK\5\6"
CHUNK = 1 << 20


class Damaged(Exception):
    """A compiled file, or what was unpacked from it, is not what was built; the text says where, and what to do."""


class Archive:
    """What a compiled file carries beside the weights.

    Attributes:
        path: of the compiled file.
        manifest: what the builder wrote about it.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            with open(path, "rb") as file:
                file.seek(-COMMENT_BYTES - END_BYTES, 2)
                if file.read(len(END)) != END:  # zipimport does not mind a comment that is cut off
                    raise ValueError("the end is missing")
            self._archive = zipimport.zipimporter(path)
            self.manifest: dict[str, Any] = json.loads(self._archive.get_data(MANIFEST))
        except Exception as error:  # damaged bytes raise whatever they like in zlib, zipimport and json
            raise self._damaged("the manifest cannot be read: " + str(error)) from None

    def read(self, member: str, size: int, digest: str) -> bytes:
        """A member's content.

        Raises:
            Damaged: it is not what was built.
        """
        try:
            content = self._archive.get_data(member)
        except Exception as error:  # as above
            raise self._damaged(member + " cannot be read: " + str(error)) from None
        if len(content) != size or hashlib.sha256(content).hexdigest() != digest:
            raise self._damaged(member + " is damaged")
        return content

    def read_all(self, rows: Sequence[tuple[str, str, int, str]]) -> Iterator[tuple[str, bytes]]:
        """Where each goes, and its content.

        Args:
            rows: where it goes, the member, its size, its SHA-256.

        Raises:
            Damaged: one is not what was built.
        """
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(2) as pool:  # zlib and SHA-256 hold no lock of Python's
            contents = pool.map(lambda row: self.read(*row[1:]), rows)
            for (place, *_), content in zip(rows, contents, strict=True):
                yield place, content

    def verify(self) -> None:
        """Check every byte of the compiled file that is not in the weights.

        Raises:
            Damaged: the first difference found.
        """
        with open(self.path, "rb") as file:
            file.seek(0, 2)
            comment_at = file.tell() - COMMENT_BYTES
            file.seek(WEIGHTS_LENGTH_AT)
            archive_at = WEIGHTS_AT + int.from_bytes(file.read(8), "little")
            file.seek(comment_at)
            comment = file.read().decode("ascii", "replace")
            parts = (("its beginning", 0, WEIGHTS_AT), ("the part behind the weights", archive_at, comment_at))
            for number, (what, start, stop) in enumerate(parts):
                file.seek(start)
                if _digest(file, stop - start) != comment[64 * number : 64 * number + 64]:
                    raise self._damaged(what + " is damaged")

    def _damaged(self, what: str) -> Damaged:
        return Damaged(self.path + ": " + what + "; the file is damaged or not complete: copy it again")


def _digest(file: BinaryIO, length: int) -> str:
    digest = hashlib.sha256()
    while length > 0 and (chunk := file.read(min(length, CHUNK))):
        digest.update(chunk)
        length -= len(chunk)
    return digest.hexdigest()
