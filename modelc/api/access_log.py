"""One line for each request that was answered, written by a thread of its own: a slow reader delays no answer."""

from __future__ import annotations

import json
import queue
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TextIO

MAX_WAITING = 10_000  # lines; more are dropped, and counted in the next line that is written
MAX_TEXT = 1000  # characters of a path or user agent


@dataclass(frozen=True, slots=True)
class Access:
    """A request and what became of it.

    Attributes:
        time: When it came, in UTC.
        id: Its identifier, also in the answer's `x-request-id`.
        client: The client's address.
        method: Of HTTP.
        path: What was asked for, without the query.
        status: Of the answer; 0 if there was none.
        bytes: Of the answer's body.
        duration_ms: From its head to the answer's end.
        complete: Whether the client got all of the answer.
        agent: The client's name for itself.
    """

    time: str
    id: str
    client: str
    method: str
    path: str
    status: int
    bytes: int
    duration_ms: float
    complete: bool
    agent: str


def as_json(access: Access) -> str:
    """One JSON object, in ASCII: no line break of Unicode gets into the line."""
    return json.dumps(asdict(access))


def as_text(access: Access) -> str:
    """One line for people; what clients choose is quoted, so that it cannot break the line."""
    path, agent = (text.encode("unicode_escape").decode().replace('"', '\\"') for text in (access.path, access.agent))
    end = "" if access.complete else " incomplete"
    return (
        f'{access.time} {access.client or "-"} "{access.method} {path}" {access.status} {access.bytes} B '
        f'{access.duration_ms:.1f} ms {access.id} "{agent}"{end}'
    )


FORMS: dict[str, Callable[[Access], str]] = {"json": as_json, "text": as_text}


class AccessLog:
    """Writes lines in the order of the answers' ends.

    Args:
        form: A key of FORMS.
        stream: Where to; None is standard output.
    """

    def __init__(self, form: str, stream: TextIO | None = None) -> None:
        self._line_of = FORMS[form]
        self._stream = stream or sys.stdout
        self._dropped = 0
        self._waiting: queue.Queue[Access | None] = queue.Queue(MAX_WAITING)
        self._writer = threading.Thread(target=self._write, name="modelc-access-log", daemon=True)
        self._writer.start()

    def note(self, access: Access) -> None:
        """Write a line soon; never waits."""
        try:
            self._waiting.put_nowait(access)
        except queue.Full:
            self._dropped += 1

    def close(self) -> None:
        """Write what is left."""
        self._waiting.put(None)
        self._writer.join()

    def _write(self) -> None:
        while (access := self._waiting.get()) is not None:
            dropped, self._dropped = self._dropped, 0
            more = f"\n# {dropped} lines were dropped" if dropped else ""
            try:
                print(self._line_of(access) + more, file=self._stream, flush=True)
            except (OSError, ValueError):  # nobody reads any more
                return


def now() -> str:
    """The time in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
