"""The key, the rate, the number at once, and what is free of them."""

import socket
import threading
import time
from typing import Any

import httpx
import pytest

FREE = ["/", "/health", "/info", "/props", "/metrics"]
KEYED = [("GET", "/v1/models"), ("GET", "/schema"), ("POST", "/chat"), ("POST", "/v1/chat/completions")]
HALF = b"POST /chat HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"
HELLO = {"messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize("path", FREE)
def test_some_paths_need_no_key_and_have_no_limits(client_of: Any, model: Any, path: str) -> None:
    client = client_of(model, api_keys=("secret",), rate_limit=1, max_concurrent=1)
    assert [client.get(path).status_code for _ in range(3)] == [200] * 3


@pytest.mark.parametrize(("method", "path"), KEYED)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "Basic secret"},
        {"authorization": "Bearer"},
        {"x": "secret"},
    ],
)
def test_the_others_answer_401_without_the_key(
    client_of: Any, model: Any, method: str, path: str, headers: dict[str, str]
) -> None:
    response = client_of(model, api_keys=("secret",)).request(method, path, headers=headers, json=HELLO)
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "invalid_api_key"
    assert response.headers["www-authenticate"] == "Bearer"
    assert model.prompts == []


@pytest.mark.parametrize(
    "headers", [{"authorization": "Bearer sécret"}, {"authorization": "bearer  sécret"}, {"x-api-key": "sécret"}]
)
def test_the_key_opens(client_of: Any, model: Any, headers: dict[str, str]) -> None:
    encoded = {name: value.encode() for name, value in headers.items()}
    assert client_of(model, api_keys=("sécret",)).post("/chat", headers=encoded, json=HELLO).status_code == 200


def test_browsers_are_answered_across_origins_also_when_refused(client_of: Any, model: Any) -> None:
    client = client_of(model, api_keys=("secret",))
    origin = {"origin": "http://page.example"}
    asks = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}
    preflight = client.options("/chat", headers={**origin, **asks})
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] == "*"
    assert "authorization" in preflight.headers["access-control-allow-headers"].lower()
    refused = client.post("/chat", headers=origin, json=HELLO)
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, "*")


def test_origins_can_be_chosen(client_of: Any, model: Any) -> None:
    client = client_of(model, cors_origins=("http://mine.example",))
    mine = client.get("/health", headers={"origin": "http://mine.example"})
    other = client.get("/health", headers={"origin": "http://other.example"})
    assert mine.headers["access-control-allow-origin"] == "http://mine.example"
    assert "access-control-allow-origin" not in other.headers
    closed = client_of(model, cors_origins=()).get("/health", headers={"origin": "http://mine.example"})
    assert "access-control-allow-origin" not in closed.headers


def test_too_many_requests_are_told_when_to_come_again(client_of: Any, model: Any) -> None:
    client = client_of(model, rate_limit=2)
    assert [client.get("/v1/models").status_code for _ in range(3)] == [200, 200, 429]
    refused = client.get("/v1/models")
    assert refused.json()["error"]["code"] == "rate_limit_exceeded"
    assert 1 <= int(refused.headers["retry-after"]) <= 60


def test_no_more_requests_at_once_than_allowed(served: Any, model: Any) -> None:
    model.delay_s = 30.0
    with served(model, max_concurrent=1) as url:
        first = threading.Thread(target=httpx.post, args=(f"{url}/chat",), kwargs={"json": HELLO, "timeout": 30})
        first.start()
        while not model.generations:
            time.sleep(0.01)
        second = httpx.post(f"{url}/chat", json=HELLO)
        assert (second.status_code, second.headers["retry-after"]) == (503, "1")
        model.generations[0].cancel()
        first.join()
        assert httpx.get(f"{url}/v1/models").status_code == 200  # the place is free again


def connection_to(url: str) -> socket.socket:
    parts = httpx.URL(url)
    return socket.create_connection((parts.host, parts.port or 80), timeout=10)


def test_a_body_that_does_not_come_takes_no_place_from_others(served: Any, model: Any) -> None:
    with served(model, max_concurrent=1) as url, connection_to(url) as half:
        half.sendall(HALF)
        time.sleep(0.1)
        assert httpx.post(f"{url}/chat", json=HELLO).status_code == 200


def test_bodies_fill_no_more_memory_than_is_meant_for_them(served: Any, model: Any) -> None:
    long = {"messages": [{"role": "user", "content": "x" * 200}], "max_tokens": 1}
    with served(model, body_memory_bytes=300) as url:
        assert httpx.post(f"{url}/chat", json={**long, "more": "x" * 300}).status_code == 200  # alone, it has room
        with connection_to(url) as half:
            half.sendall(HALF.replace(b"100", b"1000") + b" " * 250)
            time.sleep(0.1)
            assert httpx.post(f"{url}/chat", json=HELLO).status_code == 200
            refused = httpx.post(f"{url}/chat", json=long)
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "busy")
        end = time.monotonic() + 10
        while httpx.post(f"{url}/chat", json=long).status_code != 200:
            assert time.monotonic() < end


def test_a_body_that_stops_coming_is_given_up_and_its_connection_closed(served: Any, model: Any) -> None:
    with served(model, body_timeout_s=0.1) as url, connection_to(url) as half:
        half.sendall(HALF)
        answer = b"".join(iter(lambda: half.recv(4096), b""))
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b'"code":"request_timeout"' in answer
    assert model.prompts == []
