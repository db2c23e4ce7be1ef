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
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    with served([COMMAND, "run", model], os.environ) as server:
        return server.first_token_s


def first_start_s(model: Path) -> float:
    """The same on a machine that has never run modelc: every kernel has to be compiled."""
    command = [COMMAND, "run", model]
    with tempfile.TemporaryDirectory() as folder, served(command, {**os.environ, "MODELC_CACHE": folder}) as server:
        return server.first_token_s


def memory_of_run(model: Path) -> Memory | None:
    """Memory of a server after its first answer; None where the system does not tell."""
    with served([COMMAND, "run", model], os.environ) as server:
        return memory_of(server.pid, model)


def memory_of(pid: int, model: Path) -> Memory | None:
    """Memory of a process that serves from the file `model`; None where the system does not tell."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()[1:]
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
class Server:
    """A server that has answered one question.

    Attributes:
        pid: of its process.
        port: where it listens, on this computer.
        health_s: seconds from its start to the first 200 of `/health`.
        first_token_s: seconds from its start to the first token of the answer.
    """

    pid: int
    port: int
    health_s: float
    first_token_s: float


@contextlib.contextmanager
def served(command: Sequence[str | Path], environment: Mapping[str, str]) -> Iterator[Server]:
    """A server of modelc's, started by `command` without its port, that has answered one question."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    start = time.perf_counter()
    process = subprocess.Popen(
        [*command, "--port", str(port)], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        _wait_until_ready(process, port, start + LONGEST_START_S)
        ready = time.perf_counter()
        yield Server(process.pid, port, ready - start, _ask(port) - start)
    finally:
        process.terminate()
        process.communicate()


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, deadline: float) -> None:
    while time.perf_counter() < deadline:
        if process.poll() is not None:
            said = process.communicate()[1].decode("utf-8", "replace").strip().splitlines()
            raise BenchError(f"the server ended: {said[-1] if said else process.returncode}")
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        time.sleep(POLL_S)
    raise BenchError(f"the server was not ready after {LONGEST_START_S:.0f} s")


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
        raise BenchError("the server's answer was empty")
    return arrived
