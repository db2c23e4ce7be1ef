"""Slow work of one kind leaves requests of other kinds alone."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import pytest

from modelc.api.state import COMPUTING_THREADS

N_CLIENTS = COMPUTING_THREADS + 40  # more than any pool of threads has
CHAT = {"messages": [{"role": "user", "content": "hi"}], "json_schema": {"type": "string"}}


@pytest.fixture
def slow(model: Any) -> threading.Event:
    """Numbers are not computed before this is set."""
    go_on = threading.Event()

    def embed(texts: list[list[int]]) -> Any:
        go_on.wait(30)
        return np.zeros((len(texts), 2), np.float32)

    model.embed, model.infer = embed, lambda values: embed([[1]])[0]
    model.require = lambda ability: None
    model.pieces = ('"yes"',)
    return go_on


@pytest.mark.parametrize(("path", "body"), [("/v1/embeddings", {"input": "a"}), ("/infer", {"input": [1]})])
def test_requests_for_numbers_keep_nobody_else_waiting(
    served: Any, model: Any, slow: threading.Event, path: str, body: dict[str, Any]
) -> None:
    with served(model) as url, ThreadPoolExecutor(N_CLIENTS) as clients:
        flood = [clients.submit(httpx.post, url + path, json=body, timeout=60) for _ in range(N_CLIENTS)]
        try:
            while httpx.get(f"{url}/metrics").text.count(f"modelc_active_requests {N_CLIENTS}.0") == 0:
                pass
            assert httpx.post(f"{url}/tokenize", json={"input": "quick"}, timeout=5).json()["count"] == 6
            assert httpx.get(f"{url}/health", timeout=5).status_code == 200
            assert httpx.get(f"{url}/api/version", timeout=5).status_code == 200
            assert httpx.post(f"{url}/chat", json=CHAT, timeout=5).json()["message"]["content"] == '"yes"'
            assert not any(request.done() for request in flood)
        finally:
            slow.set()
        assert {request.result().status_code for request in flood} == {200}
