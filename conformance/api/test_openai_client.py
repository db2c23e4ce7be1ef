"""The `openai` package against every endpoint that modelc has of OpenAI's, whole and streamed, sync and async."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from openai import AsyncOpenAI, BadRequestError, NotFoundError, OpenAI
from pydantic import BaseModel

from conformance.api.serving import serving

pytestmark = pytest.mark.slow

MODEL = "any-name"
MESSAGES: Any = [
    {"role": "system", "content": "You are a helpful assistant."},
    {"role": "user", "content": "What is the capital of France?"},
]
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}},
            "required": ["city", "unit"],
            "additionalProperties": False,
        },
    },
}
NAMED: Any = {"type": "function", "function": {"name": "get_weather"}}


class City(BaseModel):
    """What answers are parsed into."""

    name: str
    country: Literal["France", "Germany", "Italy"]
    size: Literal["small", "large"]


@pytest.fixture(scope="module")
def url(smollm2_gguf: Path) -> Iterator[str]:
    with serving(smollm2_gguf) as url:
        yield f"{url}/v1"


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=url, api_key="none", max_retries=0) as client:
        yield client


def test_chat(client: OpenAI) -> None:
    answer = client.chat.completions.create(model=MODEL, messages=MESSAGES, max_tokens=20)
    assert "Paris" in (answer.choices[0].message.content or "")
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.choices[0].finish_reason in ("stop", "length")


def test_chat_with_all_that_clients_send(client: OpenAI) -> None:
    answer = client.chat.completions.create(
        model=MODEL,
        messages=[
            {"role": "developer", "content": "Be brief."},
            {
                "role": "user",
                "name": "ann",
                "content": [{"type": "text", "text": "Hi."}, {"type": "text", "text": "You?"}],
            },
        ],
        n=3,
        seed=5,
        temperature=0.9,
        top_p=0.9,
        presence_penalty=0.1,
        frequency_penalty=0.1,
        logit_bias={"5": -100},
        stop=["\n\n"],
        max_completion_tokens=12,
        logprobs=True,
        top_logprobs=3,
        user="u",
        store=False,
        metadata={"a": "b"},
        parallel_tool_calls=True,
        extra_body={"top_k": 50, "min_p": 0.01, "repetition_penalty": 1.1},
    )
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    for choice in answer.choices:
        assert choice.logprobs is not None
        assert choice.logprobs.content
        assert all(len(each.top_logprobs) == 3 for each in choice.logprobs.content)


def test_chat_streamed_is_the_same(client: OpenAI) -> None:
    whole = client.chat.completions.create(model=MODEL, messages=MESSAGES, max_tokens=30, logprobs=True)
    stream = client.chat.completions.create(
        model=MODEL,
        messages=MESSAGES,
        max_tokens=30,
        logprobs=True,
        stream=True,
        stream_options={"include_usage": True},
    )
    *chunks, last = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole.choices[0].message.content
    tokens = [each for c in chunks if c.choices[0].logprobs for each in c.choices[0].logprobs.content or []]
    assert whole.choices[0].logprobs is not None
    assert tokens == whole.choices[0].logprobs.content
    assert [chunk.choices[0].finish_reason for chunk in chunks][-1] == whole.choices[0].finish_reason
    assert last.usage is not None
    assert whole.usage is not None
    assert last.usage.completion_tokens == whole.usage.completion_tokens


def test_the_stream_helper_accumulates(client: OpenAI) -> None:
    with client.chat.completions.stream(model=MODEL, messages=MESSAGES, max_tokens=50) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()
    assert {"chunk", "content.delta", "content.done"} <= kinds
    assert final.choices[0].message.content


def test_structured_outputs_are_parsed(client: OpenAI) -> None:
    ask: Any = [{"role": "user", "content": "Describe the city of Paris."}]
    answer = client.chat.completions.parse(model=MODEL, messages=ask, response_format=City, max_tokens=80)
    parsed = answer.choices[0].message.parsed
    assert isinstance(parsed, City)
    with client.chat.completions.stream(model=MODEL, messages=ask, response_format=City, max_tokens=80) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.parsed == parsed
    loose = client.chat.completions.create(
        model=MODEL, messages=ask, response_format={"type": "json_object"}, max_tokens=200, frequency_penalty=0.5
    )
    if loose.choices[0].finish_reason == "stop":
        assert isinstance(json.loads(loose.choices[0].message.content or ""), dict)


@pytest.mark.parametrize("choice", ["required", NAMED])
def test_calls_that_are_demanded_match_their_schema(client: OpenAI, choice: Any) -> None:
    fields: Any = {"model": MODEL, "messages": MESSAGES, "tools": [WEATHER], "tool_choice": choice, "max_tokens": 80}
    whole = client.chat.completions.create(**fields)
    assert whole.choices[0].finish_reason == "tool_calls"
    (call,) = whole.choices[0].message.tool_calls or []
    assert call.type == "function"
    arguments = json.loads(call.function.arguments)
    assert set(arguments) == {"city", "unit"}
    assert arguments["unit"] in ("celsius", "fahrenheit")
    text, ids, names = "", [], []
    for chunk in client.chat.completions.create(**fields, stream=True):
        for delta in chunk.choices[0].delta.tool_calls or []:
            assert delta.index == 0
            assert delta.function is not None
            ids += [delta.id] if delta.id else []
            names += [delta.function.name] if delta.function.name else []
            text += delta.function.arguments or ""
    assert (json.loads(text), names, len(ids)) == (arguments, ["get_weather"], 1)
    with client.chat.completions.stream(**fields) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.tool_calls


def test_a_result_goes_back_into_the_conversation(client: OpenAI) -> None:
    first = client.chat.completions.create(
        model=MODEL, messages=MESSAGES, tools=[WEATHER], tool_choice=NAMED, max_tokens=80
    )
    message = first.choices[0].message
    call = (message.tool_calls or [])[0]
    history = [*MESSAGES, message.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": "Sunny, 21 °C"}]
    second = client.chat.completions.create(model=MODEL, messages=history, tools=[WEATHER], max_tokens=30)
    assert second.choices[0].finish_reason in ("stop", "length", "tool_calls")
    none = client.chat.completions.create(
        model=MODEL, messages=MESSAGES, tools=[WEATHER], tool_choice="none", max_tokens=10
    )
    assert none.choices[0].message.tool_calls is None


def test_completions(client: OpenAI) -> None:
    answer = client.completions.create(
        model=MODEL,
        prompt=["The capital of France is", "Two and two are"],
        max_tokens=5,
        n=2,
        best_of=3,
        logprobs=2,
        echo=True,
        suffix=" END",
        seed=1,
        temperature=0.7,
    )
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    for choice in answer.choices:
        assert choice.text.endswith(" END")
        found = choice.logprobs
        assert found is not None
        assert found.token_logprobs is not None
        assert found.token_logprobs[0] is None
        assert len(found.tokens or []) == len(found.token_logprobs) == len(found.text_offset or [])
    stream = client.completions.create(model=MODEL, prompt="Once upon", max_tokens=8, stream=True, echo=True)
    texts = [chunk.choices[0].text for chunk in stream]
    assert texts[0] == "Once upon"
    whole = client.completions.create(model=MODEL, prompt="Once upon", max_tokens=8, echo=True)
    assert "".join(texts) == whole.choices[0].text


def test_completions_of_token_ids_and_scores(client: OpenAI) -> None:
    one = client.completions.create(model=MODEL, prompt=[504, 3575, 282], max_tokens=0, echo=True, logprobs=0)
    two = client.completions.create(model=MODEL, prompt=[[504, 3575, 282], [504]], max_tokens=0, echo=True, logprobs=0)
    assert one.choices[0].logprobs == two.choices[0].logprobs
    assert one.choices[0].text == "The capital of"


def test_embeddings(client: OpenAI) -> None:
    inputs = ["The sky is blue.", "Le ciel est bleu."]
    floats = client.embeddings.create(model=MODEL, input=inputs, encoding_format="float")
    packed = client.embeddings.create(model=MODEL, input=inputs)  # the client asks for base64 and unpacks it
    assert [each.index for each in floats.data] == [0, 1]
    for a, b in zip(floats.data, packed.data, strict=True):
        assert np.array_equal(np.array(a.embedding, np.float32), np.array(b.embedding, np.float32))
    raw = client.embeddings.with_raw_response.create(model=MODEL, input=inputs[0], encoding_format="base64")
    text = json.loads(raw.content)["data"][0]["embedding"]
    assert np.array_equal(np.frombuffer(base64.b64decode(text), "<f4"), np.array(floats.data[0].embedding, np.float32))
    assert client.embeddings.create(model=MODEL, input=[504, 3575]).usage.prompt_tokens == 2


def test_models(client: OpenAI) -> None:
    (card,) = client.models.list()
    assert client.models.retrieve(card.id) == card
    with pytest.raises(NotFoundError):
        client.models.retrieve("no-such-model")


def test_errors_have_the_classes_that_clients_know(client: OpenAI) -> None:
    with pytest.raises(BadRequestError) as caught:
        client.chat.completions.create(model=MODEL, messages=MESSAGES, temperature=-1)
    assert caught.value.param == "temperature"
    image: Any = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]
    with pytest.raises(BadRequestError) as caught:
        client.chat.completions.create(model=MODEL, messages=image)
    assert caught.value.param == "messages[0].content[0].type"
    with pytest.raises(BadRequestError):
        client.chat.completions.create(model=MODEL, messages=[])
    with pytest.raises(NotFoundError):
        client.chat.completions.retrieve("chatcmpl-x")  # nothing is stored


def test_raw_and_streaming_responses(client: OpenAI) -> None:
    raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=MESSAGES, max_tokens=3, seed=7)
    assert raw.headers["x-modelc-seed"] == "7"
    assert raw.parse().choices
    with client.chat.completions.with_streaming_response.create(
        model=MODEL, messages=MESSAGES, max_tokens=3
    ) as response:
        assert b"chat.completion" in response.read()


def test_the_async_client(url: str) -> None:
    async def ask() -> tuple[str, str]:
        async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
            answers = await asyncio.gather(
                *[client.chat.completions.create(model=MODEL, messages=MESSAGES, max_tokens=15) for _ in range(8)]
            )
            assert len({answer.choices[0].message.content for answer in answers}) == 1
            stream = await client.chat.completions.create(model=MODEL, messages=MESSAGES, max_tokens=15, stream=True)
            text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
            return answers[0].choices[0].message.content or "", text

    whole, streamed = asyncio.run(ask())
    assert whole == streamed
