"""`/embeddings` and `/v1/embeddings`."""

import base64
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from litestar import Litestar
from litestar.testing import TestClient

from modelc.api.embeddings import MAX_TEXTS
from modelc.formats import open_model
from modelc.runtime.encoder import Encoder
from modelc.runtime.options import Options
from tests.api.conftest import ClientMaker
from tests.runtime.tiny_encoder import BERT
from tests.runtime.tiny_model import model_of

Client = TestClient[Litestar]
N_CTX = 64


@pytest.fixture(scope="module")
def encoder() -> Iterator[Encoder]:
    with Encoder(open_model(BERT), Options(1)) as model:
        yield model


@pytest.fixture
def client(client_of: ClientMaker, encoder: Encoder) -> Client:
    return client_of(encoder)


def test_one_text_gives_one_vector(client: Client, encoder: Encoder) -> None:
    expected = {"embedding": encoder.embed("ab").tolist(), "model": encoder.name}
    assert client.post("/embeddings", json={"input": "ab"}).json() == expected
    assert client.post("/embeddings", json={"input": encoder.tokenize("ab")}).json() == expected


def test_several_texts_give_vectors_with_their_numbers(client: Client, encoder: Encoder) -> None:
    found = client.post("/embeddings", json={"inputs": ["ab", [5, 6]]}).json()
    vectors = [encoder.embed("ab").tolist(), encoder.embed([5, 6]).tolist()]
    assert found == {"embeddings": [{"embedding": v, "index": i} for i, v in enumerate(vectors)], "model": encoder.name}


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        ("ab", ["ab"]),
        (["ab", "c"], ["ab", "c"]),
        ([5, 6], [[5, 6]]),
        ([[5, 6], [7]], [[5, 6], [7]]),
        (["a", [5]], ["a", [5]]),
    ],
)
def test_openai_s_forms_of_input(client: Client, encoder: Encoder, given: Any, texts: list[Any]) -> None:
    found = client.post("/v1/embeddings", json={"input": given, "model": "any"}).json()
    n_tokens = sum(len(encoder.tokenize(text) if isinstance(text, str) else text) for text in texts)
    assert found == {
        "object": "list",
        "data": [
            {"object": "embedding", "index": i, "embedding": encoder.embed(text).tolist()}
            for i, text in enumerate(texts)
        ],
        "model": encoder.name,
        "usage": {"prompt_tokens": n_tokens, "total_tokens": n_tokens},
    }


def test_base64_has_float32_with_the_lowest_byte_first(client: Client, encoder: Encoder) -> None:
    found = client.post("/v1/embeddings", json={"input": "ab", "encoding_format": "base64"}).json()
    vector = np.frombuffer(base64.b64decode(found["data"][0]["embedding"]), "<f4")
    assert (vector == encoder.embed("ab")).all()


def test_fewer_dimensions_are_the_first_ones_scaled_to_length_1(client: Client, encoder: Encoder) -> None:
    found = client.post("/v1/embeddings", json={"input": ["ab"], "dimensions": 3}).json()
    first = encoder.embed("ab")[:3].astype(np.float64)
    assert np.abs(np.array(found["data"][0]["embedding"]) - first / np.linalg.norm(first)).max() < 1e-6


@pytest.mark.parametrize("path", ["/embeddings", "/v1/embeddings"])
@pytest.mark.parametrize(
    "given", ["", None, 5, 1.5, True, {}, [1.5], [None], [True], [[]], ["a", 1], [[1], 2], [320], [-1]]
)
def test_what_is_no_text_is_refused_with_its_field(client: Client, path: str, given: Any) -> None:
    answer = client.post(path, json={"input": given})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"].startswith("input")


@pytest.mark.parametrize(
    ("body", "param", "message"),
    [
        ({}, "input", "missing"),
        ({"input": []}, "input", "length >= 1"),
        ({"input": ["a"] * (MAX_TEXTS + 1)}, "input", f"too many texts.*at most {MAX_TEXTS}"),
        ({"input": [5] * (N_CTX + 1)}, "input", f"too long.*got {N_CTX + 1} tokens, expected at most {N_CTX}"),
        ({"input": ["a", "word " * 1000]}, r"input[1]", "too long"),
        ({"input": "a", "dimensions": 65}, "dimensions", "too many dimensions.*got 65, expected at most 64"),
        ({"input": "a", "dimensions": 0}, "dimensions", ">= 1"),
        ({"input": "a", "encoding_format": "int8"}, "encoding_format", "int8"),
    ],
)
def test_a_wrong_openai_request_is_told_what_is_wrong(
    client: Client, body: dict[str, Any], param: str, message: str
) -> None:
    answer = client.post("/v1/embeddings", json=body)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["param"] == param
    assert re.search(message, error["message"]), error["message"]


def test_a_text_that_is_too_long_has_its_code(client: Client) -> None:
    answer = client.post("/embeddings", json={"inputs": [[5] * 1000]})
    assert answer.json()["error"]["code"] == "context_length_exceeded"


def test_decoders_give_the_last_hidden_state(client_of: ClientMaker) -> None:
    with model_of() as model:
        found = client_of(model).post("/embeddings", json={"input": [1, 2, 3]}).json()
        assert found["embedding"] == model.hidden([1, 2, 3])[-1].tolist()


def test_an_encoder_asked_to_chat_says_what_it_can_do(client: Client) -> None:
    messages = [{"role": "user", "content": "Hi"}]
    for path, body in (
        ("/chat", {"messages": messages}),
        ("/v1/chat/completions", {"messages": messages}),
        ("/complete", {"prompt": "a"}),
        ("/v1/completions", {"prompt": "a"}),
        ("/infer", {"input": [1]}),
    ):
        answer = client.post(path, json=body)
        assert answer.status_code == 400
        assert "it can embed texts (embed)" in answer.json()["error"]["message"]
        assert answer.json()["error"]["code"] == "unsupported"


def test_embedding_counts_as_inference(client: Client) -> None:
    client.post("/embeddings", json={"input": "ab"})
    assert "modelc_inference_duration_seconds_count 1.0" in client.get("/metrics").text.splitlines()
