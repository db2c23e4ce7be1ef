"""Generations end when their client goes, on a real connection."""

import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

LONG = tuple(f" {i}" for i in range(1000))
HELLO = b'{"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1000%s}'


def post(url: str, path: str, body: bytes) -> socket.socket:
    host, port = url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=20)
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    return connection


def wait_for(condition: Callable[[], object], within_s: float = 20.0) -> bool:
    end = time.monotonic() + within_s
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return bool(condition())


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("/v1/chat/completions", b', "stream": true'),
        ("/v1/chat/completions", b""),
        ("/chat/stream", b""),
        ("/chat", b""),
    ],
)
@pytest.mark.parametrize("during", ["answer", "prompt"])
def test_a_client_that_goes_away_stops_the_generation(
    served: Any, model: Any, path: str, more: bytes, during: str
) -> None:
    model.pieces, model.delay_s = LONG, 0.02
    model.prefill_s = 30.0 if during == "prompt" else 0.0
    with served(model) as url:
        connection = post(url, path, HELLO % more)
        started = 0 if during == "prompt" else 2
        assert wait_for(lambda: model.generations and model.generations[0].completion_tokens >= started)
        connection.close()
        (generation,) = model.generations
        assert generation.cancelled.wait(20)
        assert wait_for(lambda: generation.finish_reason == "cancelled")
        assert generation.completion_tokens < len(LONG)


def test_requests_are_answered_side_by_side(served: Any, model: Any) -> None:
    model.delay_s = 30.0
    statuses = []
    with served(model) as url:

        def ask() -> None:
            statuses.append(httpx.post(f"{url}/chat", content=HELLO % b"", timeout=30).status_code)

        threads = [threading.Thread(target=ask) for _ in range(5)]
        for thread in threads:
            thread.start()
        assert wait_for(lambda: len(model.generations) == 5)  # and none of them has ended
        for generation in model.generations:
            generation.cancel()
        for thread in threads:
            thread.join()
    assert statuses == [503] * 5  # cancelled, not by the client


def test_tokens_are_sent_as_they_come(served: Any, model: Any) -> None:
    model.delay_s = 30.0  # before the second token
    with served(model) as url, post(url, "/chat/stream", HELLO % b"") as connection:
        received = b""
        while b'"The"' not in received:
            received += connection.recv(4096)


def test_a_giant_body_is_refused_before_it_is_read(served: Any, model: Any) -> None:
    with served(model, max_body_bytes=100_000) as url:
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(b"POST /chat HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n")
            assert connection.recv(4096).startswith(b"HTTP/1.1 413")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(b"POST /chat HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(3):
                connection.sendall(b"c350\r\n" + b" " * 50_000 + b"\r\n")
            assert connection.recv(4096).startswith(b"HTTP/1.1 413")


def test_a_client_that_leaves_while_it_sends_is_no_fault_of_the_server(
    served: Any, model: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with served(model) as url:
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(b'POST /chat HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"mess')
            time.sleep(0.05)
        assert httpx.get(f"{url}/health").status_code == 200
    assert caplog.text == ""
