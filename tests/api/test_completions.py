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


def test_a_prompt_that_cannot_be_taken_keeps_the_others_from_starting(client: TestClient[Litestar], model: Any) -> None:
    assert client.post(URL, json={"prompt": ["a", "x" * 400], "n": 2}).status_code == 400
    assert model.generations == []


def test_all_prompts_use_the_seed_that_is_reported(client: TestClient[Litestar], model: Any) -> None:
    answer = client.post(URL, json={"prompt": ["a", "b"]}).json()
    assert {generation.seed for generation in model.generations} == {answer["seed"]}
    assert model.generations[1].sampling.seed == answer["seed"]


def test_choices_come_prompt_by_prompt_from_the_seeds_that_follow(client: TestClient[Litestar], model: Any) -> None:
    model.pieces_of_seed = {6: ["second"]}
    answer = client.post(URL, json={"prompt": ["a", "b"], "n": 2, "seed": 5}).json()
    assert [generation.seed for generation in model.generations] == [5, 6, 5, 6]
    assert model.prompts == [[256, 97], [256, 97], [256, 98], [256, 98]]
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2, 3]
    assert [choice["text"] for choice in answer["choices"]] == ["The capital is Pärïs.", "second"] * 2
    assert answer["usage"]["prompt_tokens"] == 4  # each prompt once
    assert answer["usage"]["prompt_tokens_details"] == {"cached_tokens": 2}
    assert answer["usage"]["completion_tokens"] == 12


def test_behind_the_last_seed_comes_the_first(client: TestClient[Litestar], model: Any) -> None:
    client.post(URL, json={"prompt": "a", "n": 3, "seed": 2**63 - 2})
    assert [generation.seed for generation in model.generations] == [2**63 - 2, 2**63 - 1, 0]


def test_the_likeliest_of_best_of_are_returned_the_best_first(client: TestClient[Litestar], model: Any) -> None:
    model.pieces_of_seed = {5: ["one"], 6: ["two"] * 9, 7: ["three"], 8: ["four"]}
    model.logprobs_of_seed = {5: -2.0, 6: -0.5, 7: -1.0, 8: float("nan")}
    answer = client.post(URL, json={"prompt": ["a", "b"], "n": 2, "best_of": 4, "seed": 5}).json()
    assert [(c["index"], c["text"]) for c in answer["choices"]] == [
        (0, "two" * 9),  # the mean counts, not the sum
        (1, "three"),
        (2, "two" * 9),
        (3, "three"),
    ]
    assert answer["usage"]["completion_tokens"] == 2 * 12
    assert answer["usage"]["prompt_tokens"] == 4


def test_log_probabilities_are_computed_only_where_they_decide(client: TestClient[Litestar], model: Any) -> None:
    client.post(URL, json={"prompt": "a", "n": 2, "best_of": 2})
    assert [generation.sampling.logprobs for generation in model.generations] == [False] * 2
    client.post(URL, json={"prompt": "a", "best_of": 2})
    assert [generation.sampling.logprobs for generation in model.generations[2:]] == [True] * 2


@pytest.mark.parametrize(
    ("fields", "n"), [({"n": 0}, 1), ({"n": -3}, 1), ({"n": 99}, 20), ({"n": 10**30}, 20), ({"best_of": 0}, 1)]
)
def test_numbers_of_choices_are_clamped(
    client: TestClient[Litestar], model: Any, fields: dict[str, int], n: int
) -> None:
    assert len(client.post(URL, json={"prompt": "a", **fields}).json()["choices"]) == n
    assert len(model.generations) == n


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 3, "best_of": 2}, "best_of"),
        ({"n": 2, "best_of": 0}, "best_of"),
        ({"best_of": 2, "stream": True}, "best_of"),
        ({"n": "2"}, "n"),
        ({"n": 1.5}, "n"),
        ({"best_of": True}, "best_of"),
    ],
)
def test_choices_that_cannot_be_had_are_refused(
    client: TestClient[Litestar], model: Any, fields: dict[str, Any], param: str
) -> None:
    response = client.post(URL, json={"prompt": "a", **fields})
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)
    assert model.generations == []


def test_a_stream_has_the_chunks_of_each_choice_in_order(client: TestClient[Litestar]) -> None:
    options = {"stream": True, "stream_options": {"include_usage": True}, "best_of": 2}
    *chunks, last = chunks_of(client.post(URL, json={"prompt": ["a", "b"], "n": 2, "max_tokens": 2, **options}))
    assert len({chunk["id"] for chunk in [*chunks, last]}) == 1
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    for index in range(4):
        assert [(c["text"], c["finish_reason"]) for c in choices if c["index"] == index] == [
            ("The", None),
            (" capital", None),
            ("", "length"),
        ]
    assert (last["choices"], last["usage"]["total_tokens"]) == ([], 4 + 8)
    assert all(chunk["usage"] is None for chunk in chunks)
