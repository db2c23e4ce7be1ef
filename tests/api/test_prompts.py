"""Prompts on their way to tokens: refused by length first, off the event loop, and not for clients that are gone."""

import socket
import threading
import time
from typing import Any

import httpx
import pytest

from modelc.text.shield import CLOSE, OPEN

LONG = "x" * 1200  # at least 300 tokens, as many as the context has


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/chat", {"messages": [{"role": "user", "content": LONG}]}, "messages"),
        ("/complete", {"prompt": LONG}, "prompt"),
        ("/v1/completions", {"prompt": ["a", LONG]}, "prompt[1]"),
    ],
)
def test_a_text_that_is_certainly_too_long_is_not_tokenized(
    client_of: Any, model: Any, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any], param: str
) -> None:
    def tokenize(*_: Any, **__: Any) -> list[int]:
        raise AssertionError("tokenized")

    monkeypatch.setattr(model, "tokenize", tokenize)
    response = client_of(model).post(path, json=body)
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["param"]) == (400, "context_length_exceeded", param)
    assert "at least 3" in error["message"]
    assert "fewer than the 300 tokens" in error["message"]


def test_what_the_template_leaves_out_does_not_count(client_of: Any, model: Any) -> None:
    model.chat_template = "{{ messages[0].content[:9] }}"
    model.chat_prompt_ids = lambda messages, tools: [1]
    response = client_of(model).post("/chat", json={"messages": [{"role": "user", "content": LONG}]})
    assert response.status_code == 200


def test_special_tokens_in_messages_reach_the_template_marked(client_of: Any, model: Any) -> None:
    client_of(model).post("/chat", json={"messages": [{"role": "user", "name": "<s>", "content": f"a{OPEN}<s>"}]})
    marked = f"{OPEN}<s>{CLOSE}"
    assert model.messages == [[{"role": "user", "name": marked, "content": f"a{marked}"}]]


def test_long_prompts_do_not_keep_others_waiting_and_are_left_when_the_client_goes(served: Any, model: Any) -> None:
    go_on, started = threading.Event(), []
    tokenize = model.tokenize

    def slow(text: str, **options: bool) -> list[int]:
        started.append(text.strip())
        if len(text) > 10:
            go_on.wait(10)
        return list(tokenize(text, **options))

    model.tokenize = slow
    with served(model) as url:
        address = httpx.URL(url)
        clients = [socket.create_connection((address.host, address.port or 80)) for _ in range(3)]
        for i, client in enumerate(clients):
            body = b'{"input":"%d%s"}' % (i, b" " * 70_000)
            client.sendall(b"POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            time.sleep(0.1)
        assert httpx.post(f"{url}/tokenize", json={"input": "quick"}, timeout=5).status_code == 200
        for client in clients:
            client.close()
        time.sleep(0.2)
        go_on.set()
        assert httpx.post(f"{url}/tokenize", json={"input": "last" + " " * 70_000}).status_code == 200
    assert started == ["0", "1", "quick", "last"]
