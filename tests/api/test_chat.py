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


PREFILLED = {"messages": [*HELLO["messages"], {"role": "assistant", "content": "Sure,"}]}


@pytest.mark.parametrize("path", ["/chat", "/chat/stream", "/v1/chat/completions"])
@pytest.mark.parametrize(
    ("fields", "continues", "variables"),
    [
        ({}, True, {"continue_final_message": True}),
        ({"continue_final_message": True}, True, {"continue_final_message": True}),
        (
            {"continue_final_message": True, "add_generation_prompt": False},
            True,
            {"continue_final_message": True},
        ),
        ({"continue_final_message": False}, False, {}),
        ({"add_generation_prompt": True}, False, {}),
        ({"continue_final_message": False, "add_generation_prompt": False}, False, {"add_generation_prompt": False}),
    ],
)
def test_a_last_message_of_the_assistant_goes_on_unless_that_is_not_wanted(
    client: TestClient[Litestar], model: Any, path: str, fields: Any, continues: bool, variables: Any
) -> None:
    assert client.post(path, json=PREFILLED | fields).status_code == 200
    assert model.continued == [continues]
    assert model.template_variables == [{"tools": None} | variables]


def test_any_last_message_goes_on_where_that_is_asked_for(client: TestClient[Litestar], model: Any) -> None:
    client.post("/chat", json=HELLO | {"continue_final_message": True})
    assert model.continued == [True]


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
PARTS = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]


@pytest.mark.parametrize(
    ("last", "fields", "param"),
    [
        ({"content": "a"}, {"continue_final_message": True, "add_generation_prompt": True}, "continue_final_message"),
        ({"content": "a", "tool_calls": [CALL]}, {}, "messages[1].tool_calls"),
        ({"content": PARTS}, {}, "messages[1].content"),
    ],
)
def test_what_cannot_go_on_is_refused(client: TestClient[Litestar], last: Any, fields: Any, param: str) -> None:
    messages = [*HELLO["messages"], {"role": "assistant"} | last]
    for path in ("/chat", "/v1/chat/completions"):
        response = client.post(path, json={"messages": messages} | fields)
        assert (response.status_code, response.json()["error"]["param"]) == (400, param)
        closed = {"messages": messages, "continue_final_message": False}
        assert client.post(path, json=closed).status_code == 200, "as a whole message it is taken"


def test_one_part_goes_on_like_a_string(client: TestClient[Litestar], model: Any) -> None:
    messages = [*HELLO["messages"], {"role": "assistant", "content": PARTS[:1]}]
    assert client.post("/chat", json={"messages": messages}).status_code == 200
    assert model.continued == [True]


def test_json_behind_words_that_go_on_is_no_call(client: TestClient[Litestar], model: Any) -> None:
    model.pieces = ('{"name": "f", "arguments": {}}',)
    tools = [{"type": "function", "function": {"name": "f"}}]
    model.n_ctx = 3000
    for body, has_calls in ((HELLO, True), (PREFILLED, False)):
        message = client.post("/v1/chat/completions", json=body | {"tools": tools}).json()["choices"][0]["message"]
        assert ("tool_calls" in message) == has_calls


def test_reasoning_has_fields_of_its_own(client: TestClient[Litestar], model: Any) -> None:
    model.pieces = ("<think>", "Hm", "</think>\n", "Paris")
    message = {"role": "assistant", "content": "Paris", "reasoning_content": "Hm"}
    assert client.post("/chat", json=HELLO).json() == {"message": message}
    assert events_of(client.post("/chat/stream", json=HELLO)) == [
        {"delta": "", "reasoning_delta": "Hm", "done": False},
        {"delta": "Paris", "done": False},
        {"delta": "", "done": True},
    ]


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
