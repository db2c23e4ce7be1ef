"""The life of a server: listening before the model is there, and how it ends."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import httpx
import pytest

from modelc.api.address import bind_listener
from modelc.api.options import ServeOptions
from modelc.api.server import serve
from modelc.errors import BadFileError, BadInputError, ModelcError

HELLO = {"messages": [{"role": "user", "content": "hi"}]}
PROGRAM = """
import sys
from modelc.api.options import ServeOptions
from modelc.api.server import serve

port, delay_s = int(sys.argv[1]), float(sys.argv[2])
def load():
    sys.stdin.readline()
    from tests.api.conftest import FakeModel
    return FakeModel(delay_s=delay_s)
sys.exit(serve(load, ServeOptions(port=port)))
"""


def not_to_be_loaded() -> NoReturn:
    raise AssertionError("the model was loaded")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def running(delay_s: float) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server that loads until it is told to go on, and waits so long after each token."""
    port = free_port()
    command = [sys.executable, "-c", PROGRAM, str(port), str(delay_s)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, env=environment, text=True, **pipes)
    try:
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.communicate()


def health(url: str) -> tuple[int, str] | None:
    """Status and answer of `/health`; None where nobody listens."""
    try:
        response = httpx.get(f"{url}/health", timeout=20)
    except httpx.TransportError:
        return None
    return response.status_code, response.json()["status"]


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def wait_for(url: str, wanted: tuple[int, str] | None) -> None:
    end = time.monotonic() + 30
    while (got := health(url)) != wanted:
        assert time.monotonic() < end, got
        time.sleep(0.01)


def test_it_listens_while_it_loads_and_ends_when_what_is_in_flight_is_answered() -> None:
    with running(delay_s=0.3) as (process, url):
        wait_for(url, (503, "loading"))
        go_on(process)
        wait_for(url, (200, "ok"))
        with httpx.stream("POST", f"{url}/chat/stream", json=HELLO, timeout=20) as response:
            lines = response.iter_lines()
            assert next(lines) == 'data: {"delta":"The","done":false}'
            process.send_signal(signal.SIGTERM)
            wait_for(url, None)  # no new connections
            assert process.poll() is None
            assert [line for line in lines if line][-1] == 'data: {"delta":"","done":true}'
        _, said = process.communicate(timeout=20)
        assert process.returncode == 0
        assert said == f"modelc: serving fake/model on {url} (Ctrl-C stops)\n"


def test_a_second_signal_ends_it_at_once() -> None:
    with running(delay_s=60.0) as (process, url):
        go_on(process)
        wait_for(url, (200, "ok"))
        with httpx.stream("POST", f"{url}/chat/stream", json=HELLO, timeout=20) as response:
            next(response.iter_lines())
            process.send_signal(signal.SIGINT)
            wait_for(url, None)
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=20) == 128 + signal.SIGINT


def test_half_a_request_does_not_keep_it_from_ending() -> None:
    with running(delay_s=0.0) as (process, url):
        go_on(process)
        wait_for(url, (200, "ok"))
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as half:
            half.sendall(b"POST /chat HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
            time.sleep(0.1)
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=10) == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def test_a_signal_while_it_loads_does_not_wait_for_the_model() -> None:
    with running(delay_s=0.0) as (process, url):
        wait_for(url, (503, "loading"))
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 0


def test_a_model_that_cannot_be_loaded_ends_it_with_its_error() -> None:
    def fail() -> NoReturn:
        raise BadFileError("not a model", path="x.modelc")

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(BadFileError, match="not a model"):
        serve(fail, ServeOptions(port=0))
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_port_in_use_is_found_before_the_model_is_loaded() -> None:
    with bind_listener("127.0.0.1", 0) as listener, pytest.raises(ModelcError, match="is in use"):
        serve(not_to_be_loaded, ServeOptions(port=listener.getsockname()[1]))


def test_a_default_out_of_range_is_refused_first() -> None:
    with pytest.raises(BadInputError) as caught:
        serve(not_to_be_loaded, ServeOptions(port=0, defaults={"top_p": 2.0}))
    assert caught.value.param == "top_p"
