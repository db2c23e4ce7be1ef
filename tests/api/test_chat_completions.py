"""`/v1/chat/completions`: the shape that OpenAI's clients expect, and nothing else."""

import json
from typing import Any

import httpx
import pytest
from litestar import Litestar
from litestar.testing import TestClient

HELLO = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
URL = "/v1/chat/completions"


def chunks_of(response: httpx.Response) -> list[Any]:
    assert response.status_code == 200
    *events, done, rest = response.text.split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events]


def test_a_whole_answer(client: TestClient[Litestar]) -> None:
    answer = client.post(URL, json=HELLO).json()
    assert answer.pop("id").startswith("chatcmpl-")
    assert isinstance(answer.pop("created"), int)
    assert answer.pop("system_fingerprint").startswith("modelc-")
    assert answer == {
        "object": "chat.completion",
        "model": "fake/model",
        "seed": 4242,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "The capital is Pärïs.", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 1},
        },
    }


def test_choices_draw_from_the_seeds_that_follow_and_the_prompt_counts_once(
    client: TestClient[Litestar], model: Any
) -> None:
    model.pieces_of_seed = {6: ["second"]}
    answer = client.post(URL, json={**HELLO, "n": 3, "seed": 5}).json()
    assert [generation.seed for generation in model.generations] == [5, 6, 7]
    texts = [(choice["index"], choice["message"]["content"]) for choice in answer["choices"]]
    assert texts == [(0, "The capital is Pärïs."), (1, "second"), (2, "The capital is Pärïs.")]
    assert answer["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 11,
        "total_tokens": 21,
        "prompt_tokens_details": {"cached_tokens": 1},
    }
    client.post(URL, json={**HELLO, "n": 2})  # no seed: the first one takes one, the next follows
    assert [generation.seed for generation in model.generations[3:]] == [4242, 4243]


def test_streamed_choices_each_have_a_role_their_text_and_a_reason(client: TestClient[Litestar], model: Any) -> None:
    model.pieces_of_seed = {6: ["second", "!"]}
    body = {**HELLO, "n": 2, "seed": 5, "stream": True, "stream_options": {"include_usage": True}, "max_tokens": 2}
    *chunks, last = chunks_of(client.post(URL, json=body))
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    for index, pieces, reason in ((0, ["The", " capital"], "length"), (1, ["second", "!"], "stop")):
        mine = [choice for choice in choices if choice["index"] == index]
        assert [choice["delta"] for choice in mine] == [
            {"role": "assistant", "content": ""},
            *({"content": piece} for piece in pieces),
            {},
        ]
        assert [choice["finish_reason"] for choice in mine] == [None] * 3 + [reason]
    assert (last["choices"], last["usage"]["completion_tokens"]) == ([], 4)


def test_an_answer_cut_by_max_tokens_ends_with_length(client: TestClient[Litestar]) -> None:
    choice = client.post(URL, json={**HELLO, "max_tokens": 100, "max_completion_tokens": 2}).json()["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("The capital", "length")
    choice = client.post(URL, json={**HELLO, "max_tokens": 0}).json()["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("", "length")


def test_the_seed_given_is_the_seed_reported(client: TestClient[Litestar]) -> None:
    assert client.post(URL, json={**HELLO, "seed": 11}).json()["seed"] == 11
    assert {chunk["seed"] for chunk in chunks_of(client.post(URL, json={**HELLO, "seed": 11, "stream": True}))} == {11}


def test_all_chunks_share_one_id_that_no_other_answer_has(client: TestClient[Litestar]) -> None:
    ids = [
        {
            (c["id"], c["object"], c["model"], c["created"])
            for c in chunks_of(client.post(URL, json={**HELLO, "stream": True}))
        }
        for _ in range(2)
    ]
    assert [len(each) for each in ids] == [1, 1]
    assert not {each[0] for each in ids[0]} & {each[0] for each in ids[1]}
    assert all(each[1:3] == ("chat.completion.chunk", "fake/model") for each in ids[0])


def test_the_role_comes_first_and_once_and_the_reason_last_beside_an_empty_delta(client: TestClient[Litestar]) -> None:
    chunks = chunks_of(client.post(URL, json={**HELLO, "stream": True}))
    choices = [chunk["choices"][0] for chunk in chunks]
    assert [choice["delta"] for choice in choices] == [
        {"role": "assistant", "content": ""},
        {"content": "The"},
        {"content": " capital"},
        {"content": " is Pärïs"},
        {"content": "."},
        {},
    ]
    assert [choice["finish_reason"] for choice in choices] == [None] * 5 + ["stop"]
    assert all(choice["index"] == 0 and choice["logprobs"] is None for choice in choices)
    assert all("usage" not in chunk for chunk in chunks)


def test_usage_comes_in_a_last_chunk_without_choices_when_asked_for(client: TestClient[Litestar]) -> None:
    body = {**HELLO, "stream": True, "stream_options": {"include_usage": True}}
    *chunks, last = chunks_of(client.post(URL, json=body))
    assert all(chunk["usage"] is None and len(chunk["choices"]) == 1 for chunk in chunks)
    assert last["choices"] == []
    assert last["usage"] == client.post(URL, json=HELLO).json()["usage"]


def test_stream_options_that_ask_for_nothing_add_nothing(client: TestClient[Litestar]) -> None:
    for options in (None, {}, {"include_usage": False}):
        chunks = chunks_of(client.post(URL, json={**HELLO, "stream": True, "stream_options": options}))
        assert all("usage" not in chunk for chunk in chunks)


def test_an_error_in_the_stream_is_an_event_and_its_end(client: TestClient[Litestar], model: Any) -> None:
    model.fail_after = 2
    response = client.post(URL, json={**HELLO, "stream": True})
    *_, last, rest = response.text.split("\n\n")
    assert rest == ""
    error = json.loads(last.removeprefix("data: "))["error"]
    assert error["type"] == "server_error"
    assert "[DONE]" not in response.text


def test_messages_reach_the_template_as_text(client: TestClient[Litestar], model: Any) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    client.post(URL, json={"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": parts}]})
    assert model.messages == [[{"role": "system", "content": "s"}, {"role": "user", "content": "a\nb"}]]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"function_call": {"name": "f"}}, "function_call"),
        ({"function_call": "f"}, "function_call"),
    ],
)
def test_functions_that_became_tools_are_refused(
    client: TestClient[Litestar], model: Any, fields: dict[str, Any], param: str
) -> None:
    response = client.post(URL, json={**HELLO, **fields})
    error = response.json()["error"]
    assert (response.status_code, error["param"], error["code"]) == (400, param, "unsupported")
    assert "tool" in error["message"]
    assert model.prompts == []


def test_what_common_clients_send_along_is_taken(client: TestClient[Litestar]) -> None:
    extra = {
        "n": 1,
        "tools": [],
        "tool_choice": "none",
        "functions": [],
        "function_call": "auto",
        "logprobs": False,
        "top_logprobs": None,
        "user": "me",
        "response_format": {"type": "text"},
        "stream": False,
        "store": False,
        "metadata": {},
        "seed": None,
    }
    assert client.post(URL, json={**HELLO, **extra}).status_code == 200
