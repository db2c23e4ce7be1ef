"""What the server says of itself."""

from typing import Any

from litestar import Litestar
from litestar.testing import TestClient

from modelc.version import __version__

HELLO = {"messages": [{"role": "user", "content": "hi"}]}


def test_health_names_the_model(client: TestClient[Litestar]) -> None:
    assert client.get("/health").json() == {"status": "ok", "model": "fake/model", "architecture": "llama"}
    assert client.head("/health").status_code == 200


def test_while_the_model_loads_health_says_so_and_the_rest_asks_to_wait(client_of: Any) -> None:
    client = client_of(None)
    health = client.get("/health")
    assert (health.status_code, health.json()) == (503, {"status": "loading"})
    for response in (client.get("/info"), client.get("/v1/models"), client.post("/chat", json=HELLO)):
        assert response.status_code == 503
        assert response.headers["retry-after"] == "1"
        assert "loading" in response.json()["error"]["message"]
    assert client.get("/api/version").status_code == 200
    assert client.get("/").status_code == 200


def test_info_lists_the_tensors(client: TestClient[Litestar]) -> None:
    assert client.get("/info").json() == {
        "name": "fake/model",
        "architecture": "llama",
        "total_params": 10,
        "total_bytes": 20,
        "tensors": ["a.weight", "b.weight"],
    }


def test_props_shows_the_defaults_in_use(client_of: Any, model: Any) -> None:
    props = client_of(model, defaults={"temperature": 0.5, "max_tokens": 64}).get("/props").json()
    assert props["chat_template"] == "{{ messages }}"
    assert (props["model"], props["total_params"], props["total_bytes"]) == ("fake/model", 10, 20)
    assert props["default_generation"] == {
        "max_tokens": 64,
        "temperature": 0.5,
        "top_p": 0.0,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "gamma": 0,
    }


def test_version(client: TestClient[Litestar]) -> None:
    answer = client.get("/api/version").json()
    assert answer["version"] == __version__
    assert set(answer) == {"version", "git_sha"}


def test_metrics_count_requests_tokens_and_time(client: TestClient[Litestar]) -> None:
    client.post("/chat", json=HELLO)
    client.post("/chat", json={})
    lines = client.get("/metrics").text.splitlines()
    assert 'modelc_requests_total{endpoint="/chat",status="200"} 1.0' in lines
    assert 'modelc_requests_total{endpoint="/chat",status="400"} 1.0' in lines
    assert "modelc_tokens_generated_total 5.0" in lines
    assert "modelc_active_requests 1.0" in lines  # the one that asks
    assert "modelc_inference_duration_seconds_count 1.0" in lines
    buckets = [line.split('"')[1] for line in lines if line.startswith("modelc_inference_duration_seconds_bucket")]
    assert buckets == ["0.01", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "+Inf"]
