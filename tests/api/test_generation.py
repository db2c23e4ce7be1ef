"""Generations end when their client goes, on a real connection."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from modelc.api.generation import LiveAnswer, whole
from modelc.api.options import ServeOptions
from modelc.api.state import ServerState
from modelc.runtime import Sampling

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
        status = 200 if path == "/chat/stream" or more else 499  # a stream had begun
        assert wait_for(lambda: f'endpoint="{path}",status="{status}"}} 1.0' in httpx.get(f"{url}/metrics").text)


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


def test_choices_are_sent_as_their_tokens_come(served: Any, model: Any) -> None:
    model.pieces_of_seed = {5: LONG, 6: ["quick"]}
    model.delay_s = 0.1
    with served(model) as url, post(url, "/v1/chat/completions", HELLO % b', "n": 2, "seed": 5, "stream": true') as it:
        received = b""
        while b'"finish_reason":"stop"' not in received:
            received += it.recv(4096)
        assert b'"content":" 0"' in received
        assert model.generations[0].finish_reason is None


def test_one_choice_that_fails_stops_the_others(served: Any, model: Any) -> None:
    model.pieces, model.delay_s = LONG, 0.05
    model.fail_after, model.fail_seed = 1, 6
    body = {"prompt": "a", "n": 2, "seed": 5, "max_tokens": 1000}
    with served(model) as url:
        assert httpx.post(f"{url}/v1/completions", json=body, timeout=20).status_code == 500
        assert wait_for(lambda: model.generations[0].finish_reason == "cancelled")


def test_a_client_that_does_not_read_is_not_generated_for_without_end(
    served: Any, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("modelc.api.generation.MAX_UNREAD", 50)
    model.pieces = ("x" * 100_000,) * 100_000
    with served(model) as url, post(url, "/chat/stream", HELLO.replace(b"1000", b"100000") % b""):
        assert wait_for(lambda: model.generations and model.generations[0].cancelled.is_set())
        assert wait_for(lambda: model.generations[0].finish_reason == "cancelled")


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


def test_the_event_loop_is_woken_once_for_a_whole_answer(model: Any) -> None:
    model.pieces, model.prefill_s = LONG[:100], 0.2  # time to say that only the end counts

    async def answered() -> tuple[int, str]:
        loop = asyncio.get_running_loop()
        woken, wake = [], loop.call_soon_threadsafe

        def note(callback: Callable[..., object], *args: Any) -> asyncio.Handle:
            woken.append(callback)
            return wake(callback, *args)

        loop.call_soon_threadsafe = note  # type: ignore[method-assign]
        answer = LiveAnswer(ServerState(ServeOptions(), model))
        answer.submit({"prompt": [1]}, Sampling())
        (choice,) = await whole(asyncio.Event().wait, answer)  # type: ignore[arg-type]  # never disconnects
        return len(woken), choice.text

    assert asyncio.run(answered()) == (1, "".join(LONG[:100]))
