"""`/tokenize` and `/detokenize`."""

from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient

BOS = 256


@pytest.mark.parametrize("path", ["/tokenize", "/v1/tokenize"])
def test_a_text_is_tokenized_with_what_the_model_expects_around_it(client: TestClient[Litestar], path: str) -> None:
    assert client.post(path, json={"input": "hé"}).json() == {"tokens": [BOS, 104, 195, 169], "count": 4}


def test_prompt_is_taken_for_input(client: TestClient[Litestar]) -> None:
    assert client.post("/tokenize", json={"prompt": "h"}).json() == {"tokens": [BOS, 104], "count": 2}


def test_several_texts_are_counted_together(client: TestClient[Litestar]) -> None:
    answer = client.post("/tokenize", json={"inputs": ["a", "", "bc"], "add_special": False}).json()
    assert answer == {"tokens_batch": [[97], [], [98, 99]], "count": 3}


@pytest.mark.parametrize("name", ["add_special", "add_special_tokens"])
def test_special_tokens_are_added_or_not(client: TestClient[Litestar], name: str) -> None:
    assert client.post("/tokenize", json={"input": "a", name: False}).json()["tokens"] == [97]
    assert client.post("/tokenize", json={"input": "a", name: True}).json()["tokens"] == [BOS, 97]


def test_special_tokens_in_the_text_are_recognised_only_when_asked(client: TestClient[Litestar]) -> None:
    body = {"input": "<s>", "add_special": False}
    assert client.post("/tokenize", json=body).json()["count"] == 3
    assert client.post("/tokenize", json={**body, "parse_special": True}).json()["tokens"] == [BOS]


def test_special_tokens_in_a_prompt_are_recognised_unless_told_otherwise(client: TestClient[Litestar]) -> None:
    body = {"prompt": "<s>", "add_special_tokens": False}
    assert client.post("/tokenize", json=body).json()["tokens"] == [BOS]
    assert client.post("/tokenize", json={**body, "parse_special": False}).json()["count"] == 3


@pytest.mark.parametrize("path", ["/tokenizer_info", "/v1/tokenizer_info"])
def test_the_tokenizer_s_special_tokens_are_told(client: TestClient[Litestar], path: str) -> None:
    assert client.get(path).json() == {
        "bos_token": "<s>",
        "eos_token": None,
        "pad_token": "<s>",
        "add_bos_token": True,
        "vocab_size": 257,
        "model_max_length": 300,
        "chat_template": "{{ messages }}",
    }


@pytest.mark.parametrize(
    ("body", "param"),
    [({}, "input"), ({"input": 5}, "input"), ({"inputs": "a"}, "inputs"), ({"inputs": ["a", 1]}, "inputs[1]")],
)
def test_what_is_wrong_is_named(client: TestClient[Litestar], body: Any, param: str) -> None:
    response = client.post("/tokenize", json=body)
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)


@pytest.mark.parametrize("path", ["/detokenize", "/v1/detokenize"])
def test_tokens_become_text_and_unknown_ones_are_skipped(client: TestClient[Litestar], path: str) -> None:
    answer = client.post(path, json={"tokens": [104, -1, 105, 257, 10**30]}).json()
    assert answer == {"text": "hi", "prompt": "hi"}


def test_detokenize_needs_integers(client: TestClient[Litestar]) -> None:
    response = client.post("/detokenize", json={"tokens": ["a"]})
    assert (response.status_code, response.json()["error"]["param"]) == (400, "tokens[0]")
