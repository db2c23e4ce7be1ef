"""What the server says of itself."""

from typing import Any

from litestar import Litestar
from litestar.testing import TestClient

from modelc.runtime.scheduler import Counters
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
        "gamma": 3,
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
    assert "modelc_active_requests 0.0" in lines  # the one that asks does not count
    assert "modelc_inference_duration_seconds_count 1.0" in lines
    buckets = [line.split('"')[1] for line in lines if line.startswith("modelc_inference_duration_seconds_bucket")]
    assert buckets == ["0.01", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "+Inf"]
    assert "modelc_queue_seconds_count 1.0" in lines


def test_metrics_show_what_the_scheduler_counts(client: TestClient[Litestar], model: Any) -> None:
    model.counters = Counters(*range(1, 13))
    lines = client.get("/metrics").text.splitlines()
    for name, field in (
        ("steps_total", "steps"),
        ("batch_rows_total", "rows"),
        ("queued_generations", "waiting"),
        ("running_generations", "active"),
        ("prompt_tokens_total", "prompt_tokens"),
        ("cached_tokens_total", "cached_tokens"),
        ("prefix_hits_total", "prefix_hits"),
        ("speculation_proposed_tokens_total", "proposed"),
        ("speculation_accepted_tokens_total", "accepted"),
        ("kv_pages", "pages"),
        ("kv_free_pages", "free_pages"),
        ("kept_prefixes", "kept_prefixes"),
    ):
        assert f"modelc_{name} {float(getattr(model.counters, field))}" in lines


def test_metrics_are_there_before_the_model_is(client_of: Any) -> None:
    text = client_of(None).get("/metrics").text
    assert "modelc_active_requests 0.0" in text
    assert "modelc_kv_pages" not in text
