"""What is outermost: identifiers, counts."""

import logging
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient


def test_requests_without_an_endpoint_are_counted_under_one_name(client: TestClient[Litestar]) -> None:
    for path in ("/a", "/b", "/c?d", "/wp-login.php"):
        assert client.get(path).status_code == 404
    client.get("/health")
    lines = client.get("/metrics").text.splitlines()
    assert 'modelc_requests_total{endpoint="unknown",status="404"} 4.0' in lines
    assert 'modelc_requests_total{endpoint="/health",status="200"} 1.0' in lines
    assert "modelc_active_requests 0.0" in lines
    assert not any("wp-login" in line for line in lines)


def test_refused_requests_are_counted_too(client_of: Any, model: Any) -> None:
    client = client_of(model, api_keys=("secret",), rate_limit=1)
    key = {"x-api-key": "secret"}
    assert [client.get("/v1/models", headers=headers).status_code for headers in ({}, key, key)] == [401, 200, 429]
    text = client.get("/metrics").text
    for status in (200, 401, 429):
        assert f'modelc_requests_total{{endpoint="/v1/models",status="{status}"}} 1.0' in text


@pytest.mark.parametrize("path", ["/health", "/nowhere", "/v1/models", "/"])
def test_every_answer_carries_the_request_s_identifier(client: TestClient[Litestar], path: str) -> None:
    assert client.get(path, headers={"x-request-id": "trace:1/2+3=@me"}).headers["x-request-id"] == "trace:1/2+3=@me"
    fresh = [client.get(path).headers["x-request-id"] for _ in range(2)]
    assert fresh[0] != fresh[1]


def test_streams_carry_it_and_the_log_of_faults_names_it(
    client: TestClient[Litestar], caplog: pytest.LogCaptureFixture
) -> None:
    messages = [{"role": "user", "content": "hi"}]
    stream = client.post("/chat/stream", json={"messages": messages}, headers={"x-request-id": "s-1"})
    assert (stream.status_code, stream.headers["x-request-id"]) == (200, "s-1")
    messages[0]["content"] = "explode"
    with caplog.at_level(logging.ERROR):
        client.post("/chat", json={"messages": messages}, headers={"x-request-id": "f-2"})
    assert "unforeseen error in request f-2" in caplog.text


def test_pages_of_other_origins_may_read_it(client: TestClient[Litestar]) -> None:
    exposed = client.get("/health", headers={"origin": "http://a.example"}).headers["access-control-expose-headers"]
    assert {"x-request-id", "x-modelc-seed", "retry-after"} <= set(exposed.split(", "))
