"""`/v1/completions`."""

import json
from typing import Any

import httpx
import pytest
from litestar import Litestar
from litestar.testing import TestClient

URL = "/v1/completions"


def chunks_of(response: httpx.Response) -> list[Any]:
    assert response.status_code == 200
    *events, done, rest = response.text.split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events]


@pytest.mark.parametrize(
    ("prompt", "prompts"),
    [
        ("ab", [[256, 97, 98]]),
        ("<s>ab", [[256, 97, 98]]),
        (["a", "b"], [[256, 97], [256, 98]]),
        ([97, 98], [[97, 98]]),
        ([[97], [98, 99]], [[97], [98, 99]]),
        ([[97], "b"], [[97], [256, 98]]),
    ],
    ids=str,
)
def test_prompts_are_texts_or_tokens_or_lists_of_them(
    client: TestClient[Litestar], model: Any, prompt: Any, prompts: list[list[int]]
) -> None:
    answer = client.post(URL, json={"prompt": prompt}).json()
    assert model.prompts == prompts
    assert [choice["index"] for choice in answer["choices"]] == list(range(len(prompts)))
    assert answer["usage"]["prompt_tokens"] == sum(len(ids) for ids in prompts)
    assert answer["usage"]["completion_tokens"] == 5 * len(prompts)


def test_a_whole_answer(client: TestClient[Litestar]) -> None:
    answer = client.post(URL, json={"prompt": "x", "model": "any"}).json()
    assert answer["id"].startswith("cmpl-")
    assert (answer["object"], answer["model"], answer["seed"]) == ("text_completion", "fake/model", 4242)
    assert answer["choices"] == [
        {"index": 0, "text": "The capital is Pärïs.", "logprobs": None, "finish_reason": "stop"}
    ]


@pytest.mark.parametrize(
    ("prompt", "param"),
    [
        (5, "prompt"),
        ({}, "prompt"),
        ([], "prompt"),
        ([[]], "prompt"),
        ([1, "a"], "prompt"),
        ([1, [2]], "prompt"),
        ([1.5], "prompt[0]"),
        ([[1, "a"]], "prompt[0][1]"),
        ([[97], [300]], "prompt[1]"),
        ([97, -1], "prompt"),
        (["a"] * 257, "prompt"),
        (["a", "x" * 400], "prompt[1]"),
        ([97] * 300, "prompt"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_no_prompt_is_named(client: TestClient[Litestar], prompt: Any, param: str) -> None:
    response = client.post(URL, json={"prompt": prompt})
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)


def test_a_prompt_that_cannot_be_taken_stops_those_before_it(client: TestClient[Litestar], model: Any) -> None:
    model.delay_s = 5.0
    assert client.post(URL, json={"prompt": ["a", "x" * 400]}).status_code == 400
    assert [generation.cancelled.is_set() for generation in model.generations] == [True]


def test_all_prompts_use_the_seed_that_is_reported(client: TestClient[Litestar], model: Any) -> None:
    answer = client.post(URL, json={"prompt": ["a", "b"]}).json()
    assert {generation.seed for generation in model.generations} == {answer["seed"]}
    assert model.generations[1].sampling.seed == answer["seed"]


def test_a_stream_goes_prompt_by_prompt(client: TestClient[Litestar]) -> None:
    body = {"prompt": ["a", "b"], "max_tokens": 2, "stream": True, "stream_options": {"include_usage": True}}
    *chunks, last = chunks_of(client.post(URL, json=body))
    assert len({chunk["id"] for chunk in [*chunks, last]}) == 1
    assert [(c["index"], c["text"], c["finish_reason"]) for chunk in chunks for c in chunk["choices"]] == [
        (0, "The", None),
        (0, " capital", None),
        (0, "", "length"),
        (1, "The", None),
        (1, " capital", None),
        (1, "", "length"),
    ]
    assert (last["choices"], last["usage"]["total_tokens"]) == ([], 8)
    assert all(chunk["usage"] is None for chunk in chunks)
