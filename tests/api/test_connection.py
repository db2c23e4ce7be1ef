"""What is no proper HTTP, or comes too slowly, is refused in the API's own form and harms nobody."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.api.conftest import FakeModel, serving

HELLO = {"messages": [{"role": "user", "content": "hi"}]}
BODY = json.dumps(HELLO).encode()
HEAD = b"POST /chat HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


def connection_to(url: str) -> socket.socket:
    parts = httpx.URL(url)
    return socket.create_connection((parts.host, parts.port or 80), timeout=10)


def answer_to(url: str, data: bytes) -> bytes:
    """All that a server says to these bytes until it closes, or for a while after its last word."""
    with connection_to(url) as connection:
        connection.sendall(data)
        connection.settimeout(0.5)
        said = b""
        with contextlib.suppress(TimeoutError, ConnectionError):
            while part := connection.recv(65536):
                said += part
        return said


def error_in(said: bytes) -> dict[str, Any]:
    """The error in an HTTP answer."""
    head, _, body = said.partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head.lower()
    error: dict[str, Any] = json.loads(body)["error"]
    assert list(error) == ["message", "type", "param", "code"]
    return error


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(FakeModel(), body_timeout_s=5.0) as url:
        yield url


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)),  # TLS
        b"hello\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /health HTTP/1.1\r\n\r\n",  # no host
        b"GET /hea lth HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /h\xc3\xa4lth HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nBad Header: 1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"X: a\r\n" * 30_000 + b"\r\n",
        HEAD + b"Content-Length: -1\r\n\r\n" + BODY,
        HEAD + b"Content-Length: 1e3\r\n\r\n" + BODY,
        HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + BODY,
        HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: identity\r\n\r\n" + BODY,
    ],
    ids=range(15),
)
def test_what_is_no_http_is_refused(url: str, data: bytes) -> None:
    said = answer_to(url, data)
    assert said.startswith(b"HTTP/1.1 400 ")
    assert error_in(said)["code"] == "bad_http"
    assert httpx.get(f"{url}/health").status_code == 200


@pytest.mark.parametrize(
    "data",
    [
        b"GET /health HTTP/9.9\r\nHost: x\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 60_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
    ids=range(4),
)
def test_what_is_odd_has_a_short_answer(url: str, data: bytes) -> None:
    said = answer_to(url, data)
    assert said.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 400 ", b"HTTP/1.1 404 "))
    assert len(said) < 2000


@pytest.mark.parametrize(
    "chunks", [b"zz\r\n", b"5\r\nhelloXX", b"-1\r\n\r\n", b"ffffffffffffffffffff\r\n", b"5;" + b"x" * 99999]
)
def test_chunks_that_are_none_end_the_request(url: str, chunks: bytes) -> None:
    said = answer_to(url, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)
    assert said == b"" or said.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 408 ", b"HTTP/1.1 413 "))
    assert httpx.get(f"{url}/health").status_code == 200


def test_both_lengths_at_once_smuggle_no_second_request(url: str) -> None:
    inner = b"GET /info HTTP/1.1\r\nHost: x\r\n\r\n"
    said = answer_to(url, HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner)
    assert b'"tensors"' not in said.partition(b"\r\n\r\n")[0]
    assert b"HTTP/1.1 400 " in said, "the body is the chunked one, and empty"


@pytest.mark.parametrize(
    "name",
    ["x-request-id", "authorization", "x-api-key", "x-forwarded-for", "origin", "content-type", "accept", "user-agent"],
)
def test_header_values_get_into_no_other_header(url: str, name: str) -> None:
    for value in (
        b"a\rX-Evil: 1",
        b"a\nX-Evil: 1",
        b"a\r\nX-Evil: 1",
        b"a%0d%0aX-Evil: 1",
        b"\xff\xfe",
        b"\xc2\x85X-Evil: 1",
    ):
        said = answer_to(
            url,
            b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + name.encode() + b": " + value + b"\r\n\r\n",
        )
        assert b"\nx-evil" not in said.lower()
        assert said.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 400 "))


@pytest.mark.parametrize(
    "path",
    [
        "/%00",
        "/..%2f..%2fetc/passwd",
        "/v1/models/../../x",
        "/%ff%fe",
        "//",
        "/v1/models/%0d%0aX:1",
        "/?" + "a=1&" * 5000,
    ],
)
def test_odd_paths_are_not_found(url: str, path: str) -> None:
    said = answer_to(url, f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    assert said.startswith((b"HTTP/1.1 404 ", b"HTTP/1.1 400 ", b"HTTP/1.1 200 "))
    assert b"root:" not in said


def test_a_head_that_does_not_come_in_time_is_given_up(served: Any, model: Any) -> None:
    with served(model, body_timeout_s=0.3) as url:
        for begun in (b"", b"GET /hea", HEAD):
            said = answer_to(url, begun)
            assert said.startswith(b"HTTP/1.1 408 ")
            assert error_in(said)["code"] == "request_timeout"
        with connection_to(url) as slow:  # a byte now and then buys no time
            start = time.monotonic()
            with contextlib.suppress(ConnectionError):
                while time.monotonic() < start + 5 and not b"".join(received(slow)):
                    slow.sendall(b"G")
                    time.sleep(0.05)
            assert time.monotonic() - start < 2
        with httpx.Client() as client:  # between requests there is more time
            assert client.get(f"{url}/health").status_code == 200
            time.sleep(0.5)
            assert client.get(f"{url}/health").status_code == 200


def received(connection: socket.socket) -> Iterator[bytes]:
    connection.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        yield connection.recv(4096)
    connection.setblocking(True)


def test_a_chunked_body_that_never_ends_is_given_up(served: Any, model: Any) -> None:
    with served(model, body_timeout_s=0.3, max_body_bytes=1000) as url:
        with connection_to(url) as endless:  # quick, and too large
            endless.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                for _ in range(100):
                    endless.sendall(b"64\r\n" + b" " * 100 + b"\r\n")
            assert endless.recv(65536).startswith(b"HTTP/1.1 413 ")
        with connection_to(url) as dripping:  # slow, a byte at a time: not for ever
            dripping.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
            start = time.monotonic()
            with contextlib.suppress(ConnectionError):
                while time.monotonic() < start + 10 and not b"".join(received(dripping)):
                    dripping.sendall(b"1\r\n \r\n")
                    time.sleep(0.1)
            assert 2.5 < time.monotonic() - start < 6
    assert model.prompts == []


def test_a_thousand_connections_do_not_keep_others_waiting(served: Any, model: Any) -> None:
    with served(model) as url, contextlib.ExitStack() as stack:
        held = [stack.enter_context(connection_to(url)) for _ in range(1000)]
        for connection in held[:500]:
            connection.sendall(b"GET /health HT")
        assert httpx.post(f"{url}/chat", json=HELLO, timeout=10).status_code == 200
        for connection in held[:500]:
            connection.sendall(b"TP/1.1\r\nHost: x\r\n\r\n")
        for connection in held[500:]:
            connection.sendall(HEAD + b"Content-Length: " + str(len(BODY)).encode() + b"\r\n\r\n" + BODY)
        assert all(connection.recv(65536).startswith(b"HTTP/1.1 200 ") for connection in held)


def test_a_client_that_reads_nothing_stops_its_generation(served: Any, model: Any) -> None:
    model.pieces = ["x" * 1000] * 200_000
    model.n_ctx = 10**6
    fields = {**HELLO, "max_tokens": 200_000}
    body = json.dumps(fields).encode()
    with served(model) as url, connection_to(url) as deaf:
        deaf.sendall(
            b"POST /chat/stream HTTP/1.1\r\nHost: x\r\nContent-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body
        )
        end = time.monotonic() + 20
        while not (model.generations and model.generations[0].cancelled.is_set()):
            assert time.monotonic() < end
            time.sleep(0.01)
        assert httpx.get(f"{url}/health").status_code == 200


def test_keys_are_asked_before_a_body_is_read(served: Any, model: Any) -> None:
    with served(model, api_keys=("secret",)) as url:
        said = answer_to(url, HEAD + b"Content-Length: 100000000\r\n\r\n")
        assert said.startswith(b"HTTP/1.1 401 ")
    assert threading.active_count() < 200
