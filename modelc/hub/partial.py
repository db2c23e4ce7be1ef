"""A file that arrives in pieces: which bytes are there, also after a kill.

Beside `NAME.part` stands `NAME.part.json` with the number of bytes that every segment has. Bytes are written before
they are counted, so a kill loses at most what came since the note was last written.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from pathlib import Path
from typing import BinaryIO

from modelc.small_file import replace_text

NOTE_S = 0.2  # between two writes of the note
MIN_SEGMENT_BYTES = 16 << 20
MAX_SEGMENTS = 64  # of a large file


class PartialFile:
    """The bytes of a file of known size. Segments are filled by different threads.

    Attributes:
        path: where the bytes are.
        size: of the whole file.
        segment_bytes: of each segment but the last.
    """

    def __init__(self, path: Path, size: int) -> None:
        """Take up what is there, or begin anew.

        Raises:
            OSError: the file cannot be written.
        """
        self.path = path
        self.size = size
        self.segment_bytes = max(MIN_SEGMENT_BYTES, -(-size // MAX_SEGMENTS))
        self._note = path.with_name(path.name + ".json")
        self._lock = threading.Lock()
        self._noted_s = time.monotonic()
        n_segments = -(-size // self.segment_bytes)
        self._done = self._read_note(n_segments) or [0] * n_segments
        with path.open("ab") as file:
            file.truncate(size)

    def open(self) -> BinaryIO:
        """The file, for one thread to write to."""
        return self.path.open("r+b", buffering=0)

    @property
    def missing(self) -> list[int]:
        """Numbers of the segments that are not complete."""
        return [number for number in range(len(self._done)) if self._done[number] < self._length(number)]

    @property
    def done_bytes(self) -> int:
        """Bytes that are there."""
        return sum(self._done)

    @property
    def leading_bytes(self) -> int:
        """Bytes that are there without a gap from the beginning."""
        for number, done in enumerate(self._done):
            if done < self._length(number):
                return number * self.segment_bytes + done
        return self.size

    def span(self, number: int) -> tuple[int, int]:
        """First byte that segment `number` lacks, and the one behind its last."""
        start = number * self.segment_bytes
        return start + self._done[number], start + self._length(number)

    def add(self, number: int, n_bytes: int) -> None:
        """Count bytes that were written to segment `number`."""
        self._done[number] += n_bytes
        if time.monotonic() - self._noted_s > NOTE_S:
            self.note()

    def note(self) -> None:
        """Write down what is there; what cannot be written down is downloaded again after a break."""
        with self._lock, contextlib.suppress(OSError):
            self._noted_s = time.monotonic()
            replace_text(self._note, json.dumps({"size": self.size, "done": list(self._done)}))

    def remove_note(self) -> None:
        """Forget what is there: the file is complete, or comes in another way."""
        self._note.unlink(missing_ok=True)

    def _length(self, number: int) -> int:
        return min(self.segment_bytes, self.size - number * self.segment_bytes)

    def _read_note(self, n_segments: int) -> list[int] | None:
        try:
            note = json.loads(self._note.read_text("utf-8"))
            done = note["done"]
            fits = note["size"] == self.size == self.path.stat().st_size and len(done) == n_segments
            right = all(type(n) is int and 0 <= n <= self._length(i) for i, n in enumerate(done))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return list(done) if fits and right else None
