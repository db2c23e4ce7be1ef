"""Checksums of downloads: computed beside the download, behind the bytes that are there without a gap."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

READ_BYTES = 4 << 20
POLL_S = 0.02


def hasher(digest: str, size: int) -> Any:
    """The hash object for a digest like `sha256:…` or `git-sha1:…` (git's, of a file of `size` bytes)."""
    kind = digest.partition(":")[0]
    if kind == "git-sha1":
        return hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    return hashlib.new(kind)


class Follower:
    """Reads a growing file in a thread of its own and computes its checksum.

    Args:
        path: the file.
        digest: what it must be, as `hasher` takes it.
        size: of the whole file.
        available: returns how many bytes are there without a gap from the beginning.
    """

    def __init__(self, path: Path, digest: str, size: int, available: Callable[[], int]) -> None:
        self._path = path
        self._size = size
        self._available = available
        self._hash = hasher(digest, size)
        self._stop = threading.Event()
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="modelc-checksum", daemon=True)
        self._thread.start()

    def result(self) -> str:
        """Hexadecimal digits of the checksum; waits until the whole file is read."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return str(self._hash.hexdigest())

    def stop(self) -> None:
        """Give up."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        done = 0
        buffer = memoryview(bytearray(READ_BYTES))
        try:
            with self._path.open("rb", buffering=0) as file:
                while done < self._size and not self._stop.is_set():
                    ready = min(self._available() - done, READ_BYTES)
                    if ready < READ_BYTES and done + ready < self._size:
                        self._stop.wait(POLL_S)
                        continue
                    n_bytes = file.readinto(buffer[:ready])
                    self._hash.update(buffer[:n_bytes])
                    done += n_bytes
        except OSError as error:
            self._error = error
