"""`/chat`, `/chat/stream` and `/complete`."""

import json
from typing import Any

import httpx
import pytest
from litestar import Litestar
from litestar.testing import TestClient

HELLO = {"messages": [{"role": "user", "content": "hi"}]}


def events_of(response: httpx.Response) -> list[Any]:
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    *events, rest = response.text.split("\n\n")
    assert rest == ""
    return [json.loads(event.removeprefix("data: ")) for event in events]


def test_chat_answers_with_a_message_and_the_seed_in_a_header(client: TestClient[Litestar]) -> None:
    response = client.post("/chat", json=HELLO)
    assert response.status_code == 200
    assert response.json() == {"message": {"role": "assistant", "content": "The capital is Pärïs."}}
    assert response.headers["x-modelc-seed"] == "4242"


def test_chat_streams_a_token_at_a_time(client: TestClient[Litestar]) -> None:
    assert events_of(client.post("/chat/stream", json=HELLO)) == [
        {"delta": "The", "done": False},
        {"delta": " capital", "done": False},
        {"delta": " is Pärïs", "done": False},
        {"delta": ".", "done": False},
        {"delta": "", "done": True},
    ]


def test_only_completions_go_on_with_the_prompt_s_text(client: TestClient[Litestar], model: Any) -> None:
    chat = {"messages": [{"role": "user", "content": "hi"}]}
    for path, body in (("/chat", chat), ("/v1/chat/completions", chat), ("/complete", {"prompt": "x"})):
        client.post(path, json=body)
    client.post("/v1/completions", json={"prompt": [97, 98]})
    assert model.continued == [False, False, True, True]


def test_complete_continues_the_prompt(client: TestClient[Litestar], model: Any) -> None:
    response = client.post("/complete", json={"prompt": "<s>ab", "max_tokens": 2, "seed": 7})
    assert response.json() == {"completion": "The capital"}
    assert response.headers["x-modelc-seed"] == "7"
    assert model.prompts == [[256, 97, 98]]  # one BOS, although prompt and tokenizer both have it


@pytest.mark.parametrize("path", ["/chat", "/chat/stream"])
def test_a_template_that_refuses_is_400(client: TestClient[Litestar], path: str) -> None:
    response = client.post(path, json={"messages": [{"role": "martian", "content": "hi"}]})
    assert (response.status_code, response.json()["error"]["param"]) == (400, "messages")


@pytest.mark.parametrize("path", ["/chat", "/chat/stream"])
def test_a_conversation_longer_than_the_context_is_400_with_both_numbers(
    client: TestClient[Litestar], path: str, model: Any
) -> None:
    response = client.post(path, json={"messages": [{"role": "user", "content": "x" * 1000}]})
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["param"]) == (400, "context_length_exceeded", "messages")
    assert "1008 tokens" in error["message"]
    assert "300 tokens" in error["message"]
    assert model.prompts == []


def test_an_error_of_the_engine_is_500_and_in_a_stream_the_last_event(client: TestClient[Litestar], model: Any) -> None:
    model.fail_after = 1
    whole = client.post("/chat", json=HELLO)
    assert (whole.status_code, whole.json()["error"]["type"]) == (500, "server_error")
    first, error = events_of(client.post("/chat/stream", json=HELLO))
    assert first == {"delta": "The", "done": False}
    assert error == whole.json()
    assert "the file changed under the engine" in error["error"]["message"]


@pytest.mark.parametrize("prompt", [5, ["a"], None])
def test_complete_takes_one_text(client: TestClient[Litestar], prompt: Any) -> None:
    response = client.post("/complete", json={"prompt": prompt})
    assert (response.status_code, response.json()["error"]["param"]) == (400, "prompt")
