"""The `openai` package against a server, in short; `conformance/api` has it at length, on a real model."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from openai import BadRequestError, NotFoundError, OpenAI

TOOL: Any = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}
MESSAGES: Any = [{"role": "user", "content": "hi"}]


@pytest.fixture
def openai(served: Any, model: Any) -> Iterator[OpenAI]:
    model.n_ctx = 3000
    with served(model) as url, OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_chats_whole_and_streamed(openai: OpenAI) -> None:
    fields: Any = {"model": "any", "messages": MESSAGES, "logprobs": True, "top_logprobs": 0}
    whole = openai.chat.completions.create(**fields)
    assert whole.choices[0].message.content == "The capital is Pärïs."
    *chunks, last = openai.chat.completions.create(**fields, stream=True, stream_options={"include_usage": True})
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole.choices[0].message.content
    assert last.usage == whole.usage
    streamed = [each for c in chunks if c.choices[0].logprobs for each in c.choices[0].logprobs.content or []]
    assert whole.choices[0].logprobs is not None
    assert whole.choices[0].logprobs.content == streamed


def test_tool_calls_whole_streamed_and_accumulated_by_the_client(openai: OpenAI, model: Any) -> None:
    model.pieces = ("<tool_call>", '{"name": "add", "arguments": {"a"', ": [1, 2]}}", "</tool_call>")
    fields: Any = {"model": "any", "messages": MESSAGES, "tools": [TOOL]}
    (call,) = openai.chat.completions.create(**fields).choices[0].message.tool_calls or []
    assert call.type == "function"
    assert (call.function.name, json.loads(call.function.arguments)) == ("add", {"a": [1, 2]})
    with openai.chat.completions.stream(**fields) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion().choices[0]
    (joined,) = final.message.tool_calls or []
    assert (joined.function.name, joined.function.arguments) == (call.function.name, call.function.arguments)
    assert final.finish_reason == "tool_calls"
    assert "tool_calls.function.arguments.delta" in kinds


def test_completions_and_models(openai: OpenAI) -> None:
    answer = openai.completions.create(model="any", prompt=["a", "b"], echo=True, max_tokens=1)
    assert [choice.text for choice in answer.choices] == ["aThe", "bThe"]
    (card,) = openai.models.list()
    assert openai.models.retrieve(card.id) == card


def test_errors_have_the_classes_that_clients_know(openai: OpenAI) -> None:
    with pytest.raises(BadRequestError) as caught:
        openai.chat.completions.create(model="any", messages=MESSAGES, temperature=-1)
    assert caught.value.param == "temperature"
    with pytest.raises(NotFoundError):
        openai.models.retrieve("other")
