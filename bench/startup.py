"""What a user waits for and what a server takes: start, first token, first start ever, memory, opening a file."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.engines import BenchError
from bench.figures import Figure

COMMAND = Path(sys.executable).with_name("modelc")
POLL_S = 0.01
LONGEST_START_S = 120.0
QUESTION = {"messages": [{"role": "user", "content": "What is the capital of France?"}], "max_tokens": 16}


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory of a server that has answered a request, in bytes.

    Attributes:
        resident: all of it (Rss).
        proportional: with shared pages divided among those who share them (Pss).
        anonymous: not backed by a file.
        file: size of the `.modelc` that it serves from.
    """

    resident: int
    proportional: int
    anonymous: int
    file: int

    @property
    def above_file(self) -> int:
        """What is resident beyond the size of the file."""
        return self.resident - self.file


def repeated(measure: Callable[[], float], times: int) -> Figure:
    """The same measurement several times."""
    return Figure(tuple(measure() for _ in range(times)))


def help_s() -> float:
    """Seconds that `modelc --help` takes."""
    start = time.perf_counter()
    subprocess.run([COMMAND, "--help"], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def first_token_s(model: Path) -> float:
    """Seconds from the start of `modelc run` to the first token of a request, with kernels cached."""
    with _served(model, os.environ) as server:
        return server.first_token_s


def first_start_s(model: Path) -> float:
    """The same on a machine that has never run modelc: every kernel has to be compiled."""
    with tempfile.TemporaryDirectory() as folder, _served(model, {**os.environ, "MODELC_CACHE": folder}) as server:
        return server.first_token_s


def memory_of_run(model: Path) -> Memory | None:
    """Memory of a server after its first answer; None where the system does not tell."""
    with _served(model, os.environ) as server:
        try:
            lines = Path(f"/proc/{server.pid}/smaps_rollup").read_text("ascii").splitlines()[1:]
        except OSError:
            return None
    sizes = {name: int(size.split()[0]) * 1024 for name, _, size in (line.partition(":") for line in lines)}
    return Memory(sizes["Rss"], sizes["Pss"], sizes["Anonymous"], model.stat().st_size)


def open_gguf_s(path: Path) -> float:
    """Seconds to open and parse a GGUF file."""
    from modelc.formats import open_model

    start = time.perf_counter()
    open_model(path)
    return time.perf_counter() - start


@dataclass(frozen=True, slots=True)
class _Server:
    pid: int
    first_token_s: float


@contextlib.contextmanager
def _served(model: Path, environment: Mapping[str, str]) -> Iterator[_Server]:
    """A server that has answered one question."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    start = time.perf_counter()
    process = subprocess.Popen(
        [COMMAND, "run", model, "--port", str(port)], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        _wait_until_ready(process, port, start + LONGEST_START_S)
        yield _Server(process.pid, _ask(port) - start)
    finally:
        process.terminate()
        process.communicate()


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, deadline: float) -> None:
    while time.perf_counter() < deadline:
        if process.poll() is not None:
            said = process.communicate()[1].decode("utf-8", "replace").strip().splitlines()
            raise BenchError(f"`modelc run` ended: {said[-1] if said else process.returncode}")
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        time.sleep(POLL_S)
    raise BenchError(f"`modelc run` was not ready after {LONGEST_START_S:.0f} s")


def _ask(port: int) -> float:
    """Ask a question, read the whole answer, and return the time (`perf_counter`) at which its first token came."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = json.dumps({**QUESTION, "stream": True})
    connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
    arrived = None
    for line in connection.getresponse():
        data = line.decode("utf-8").strip().removeprefix("data: ")
        if arrived is None and data.startswith("{") and json.loads(data)["choices"][0]["delta"].get("content"):
            arrived = time.perf_counter()
    if arrived is None:
        raise BenchError("the answer of `modelc run` was empty")
    return arrived
