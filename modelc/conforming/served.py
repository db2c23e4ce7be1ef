"""A server that runs as a process of its own, or somewhere else already."""

from __future__ import annotations

import http.client
import re
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from urllib.parse import urlsplit

from modelc.conforming.requests import Request, encoded
from modelc.errors import BadInputError, ModelcError

READY = re.compile(r"modelc: serving .* on (http://\S+)")
COMPARED_HEADERS = ("content-type", "x-modelc-seed", "x-modelc-fallback", "x-modelc-generated")
TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: the status, those headers that are compared, the body."""

    status: int
    headers: tuple[str, ...]
    body: bytes


class Served:
    """A server to ask; a context manager.

    Args:
        command: starts it, with `--port 0` to come; or a URL.

    Raises:
        ModelcError: it did not start; with the last line that it said.
    """

    def __init__(self, command: Sequence[str] | str) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._said: list[str] = []
        url = command if isinstance(command, str) else self._start(command)
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port or 80
        except ValueError:
            host = None
        if host is None or parts.scheme != "http":
            raise BadInputError("not the address of a server", param="URL", got=url, expected="http://ADDRESS:PORT")
        self._host, self._port = host, port

    def _start(self, command: Sequence[str]) -> str:
        try:
            process = subprocess.Popen(
                [*command, "--port", "0"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
        except OSError as error:
            raise ModelcError("it cannot be started", path=command[0], got=error.strerror) from None
        self._process = process
        assert process.stderr is not None
        for line in process.stderr:
            self._said.append(line.rstrip())
            if ready := READY.search(line):
                threading.Thread(target=process.stderr.read, daemon=True).start()  # what it says later fills no pipe
                return ready[1]
        with process:  # ends, and closes the pipe
            pass
        raise ModelcError("it did not start", path=command[0], got=self._said[-1] if self._said else "nothing said")

    def ask(self, request: Request) -> Answer:
        """Send a request and take the whole answer.

        Raises:
            ModelcError: there is none.
        """
        connection = http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_S)
        try:
            connection.request(
                request.method, request.path, encoded(request.body), {"content-type": "application/json"}
            )
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            said = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise ModelcError(
                "no answer", param=request.name, expected=f"one of http://{self._host}:{self._port}", got=said
            ) from None
        finally:
            connection.close()
        headers = [f"{name}: {value}" for name in COMPARED_HEADERS if (value := response.getheader(name)) is not None]
        return Answer(response.status, tuple(headers), body)

    def close(self) -> None:
        """End the process, where there is one."""
        if self._process is not None:
            with self._process:
                self._process.terminate()

    def __enter__(self) -> Served:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
