"""Downloads a file: in ranges over several connections, taken up again after a break or a kill, checked at the end."""

from __future__ import annotations

import queue
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import httpx

from modelc.errors import BadFileError, NetworkError
from modelc.hub.client import Attempts, Client, StatusError
from modelc.hub.digest import Follower, hasher
from modelc.hub.partial import PartialFile
from modelc.hub.remote import RemoteFile

CONNECTIONS = 4
POLL_S = 0.1
STOP_S = 1.0  # a thread that waits for a silent server longer than this is left alone
CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")

Progress = Callable[[int, int], None]  # (done bytes, total bytes or 0)


class _NoRangesError(Exception):
    """The server sends whole files only."""


def probe(client: Client, file: RemoteFile) -> RemoteFile:
    """Ask for one byte of `file`; return it with the size and the ETag that the server tells.

    The size stays None where the server sends whole files only, so that `fetch` does not ask for parts.

    Raises:
        ModelcError: the file cannot be had.
    """
    attempts = Attempts(client.stopped)
    while True:
        try:
            with client.open(file.url, {**file.headers, "Range": "bytes=0-0"}) as response:
                found = CONTENT_RANGE.fullmatch(response.headers.get("content-range", ""))
                size = int(found[3]) if found is not None and response.status_code == 206 else None
                return replace(file, size=size, etag=response.headers.get("etag"))
        except (httpx.TransportError, StatusError) as error:
            attempts.failed(error, file.url)


def fetch(client: Client, file: RemoteFile, target: Path, progress: Progress) -> None:
    """Download `file` to `target`, which appears only when it is whole and its checksum right.

    Args:
        client: for the requests.
        file: what to fetch; in ranges where its size is known.
        target: the path to write; beside it stands what has come, until it is whole.
        progress: told the bytes that are there.

    Raises:
        ModelcError: the file cannot be had, or is another than it should be; what has come is kept for another try
            unless it is wrong.
        OSError: it cannot be written.
    """
    part = target.with_name(target.name + ".part")
    expected = (file.digest or "").partition(":")[2]
    for _ in range(2):
        resumed, got = _download(client, file, part, progress)
        if got == expected:
            part.replace(target)
            return
        part.unlink()
        if not resumed:  # else what was there before may have been another state of the file
            break
    hint = "try again; if it stays so, the file is damaged where it comes from"
    raise BadFileError("the checksum is wrong", path=file.url, expected=expected, got=got, hint=hint)


def _download(client: Client, file: RemoteFile, part: Path, progress: Progress) -> tuple[bool, str]:
    """Whether something was there before, and the checksum, empty where none is asked for."""
    if file.size:
        partial = PartialFile(part, file.size)
        resumed = partial.done_bytes > 0
        try:
            got = _RangeDownload(client, file, partial).run(progress)
        except _NoRangesError:
            partial.remove_note()
        except BaseException:
            partial.note()
            raise
        else:
            partial.remove_note()
            return resumed, got
    return False, _fetch_whole(client, file, part, progress)


def _fetch_whole(client: Client, file: RemoteFile, part: Path, progress: Progress) -> str:
    """Download with one request; a break means to begin again."""
    attempts = Attempts(client.stopped)
    while True:
        digest = hasher(file.digest, file.size or 0) if file.digest else None
        done = 0
        try:
            with client.open(file.url, file.headers) as response, part.open("wb") as target:
                told = response.headers.get("content-length", "")
                total = file.size or (int(told) if told.isdecimal() else 0)
                for piece in response.iter_raw():
                    target.write(piece)
                    if digest is not None:
                        digest.update(piece)
                    done += len(piece)
                    progress(done, total)
            if file.size is not None and done != file.size:
                raise NetworkError("the file has a wrong length", path=file.url, expected=file.size, got=done)
            return str(digest.hexdigest()) if digest is not None else ""
        except (httpx.TransportError, StatusError) as error:
            attempts.failed(error, file.url)


class _RangeDownload:
    """Threads that fill the segments of a partial file."""

    def __init__(self, client: Client, file: RemoteFile, partial: PartialFile) -> None:
        self._client = client
        self._file = file
        self._partial = partial
        self._segments: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._failures: queue.SimpleQueue[BaseException] = queue.SimpleQueue()

    def run(self, progress: Progress) -> str:
        """Download what is missing; return the checksum, empty where none is asked for."""
        partial = self._partial
        missing = partial.missing
        for number in missing:
            self._segments.put(number)
        follower = None
        if self._file.digest is not None:
            follower = Follower(partial.path, self._file.digest, partial.size, lambda: partial.leading_bytes)
        threads = [
            threading.Thread(target=self._work, name=f"modelc-download-{i}", daemon=True)
            for i in range(min(CONNECTIONS, len(missing)))
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(POLL_S)
                    progress(partial.done_bytes, partial.size)
                    if not self._failures.empty():
                        raise self._failures.get()
            return follower.result() if follower is not None else ""
        finally:
            self._stop.set()
            for thread in threads:
                if thread.is_alive():
                    thread.join(STOP_S)
            if follower is not None:
                follower.stop()

    def _work(self) -> None:
        try:
            with self._partial.open() as target:
                while not self._stop.is_set():
                    self._fetch(self._segments.get_nowait(), target)
        except queue.Empty:
            return
        except BaseException as error:
            self._failures.put(error)

    def _fetch(self, number: int, target: BinaryIO) -> None:
        """Download what segment `number` lacks."""
        attempts = Attempts(self._stop)
        while not self._stop.is_set():
            start, end = self._partial.span(number)
            if start == end:
                return
            asked = {**self._file.headers, "Range": f"bytes={start}-{end - 1}"}
            try:
                with self._client.open(self._file.url, asked) as response:
                    self._check(response, start)
                    target.seek(start)
                    for piece in response.iter_raw():
                        fitting = piece[: end - start]
                        target.write(fitting)
                        start += len(fitting)
                        self._partial.add(number, len(fitting))
                        attempts.succeeded()
                        if start == end or self._stop.is_set():
                            break
                    else:
                        raise httpx.RemoteProtocolError("the answer is shorter than it should be")
            except (httpx.TransportError, StatusError) as error:
                attempts.failed(error, self._file.url)

    def _check(self, response: httpx.Response, start: int) -> None:
        """Check that an answer is the part that was asked for, of the file that was asked for."""
        if response.status_code != 206:
            raise _NoRangesError
        found = CONTENT_RANGE.fullmatch(response.headers.get("content-range", ""))
        if found is None or int(found[1]) != start:
            raise NetworkError("the server sends another part than was asked for", path=self._file.url)
        etag = response.headers.get("etag")
        same = self._file.etag in (None, etag) or etag is None
        if int(found[3]) != self._partial.size or not same:
            hint = "run the command again"
            size = f"{self._partial.size} bytes"
            raise NetworkError(
                "the file is another one than before", path=self._file.url, expected=size, got=found[0], hint=hint
            )
