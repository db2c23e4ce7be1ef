"""Every field with every wrong type and absurd value: a 400 that names the field, or an answer, never a fault."""

import gzip
import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from litestar import Litestar
from litestar.testing import TestClient

BASES: dict[str, dict[str, Any]] = {
    "/chat": {"messages": [{"role": "user", "content": "hi"}]},
    "/chat/stream": {"messages": [{"role": "user", "content": "hi"}]},
    "/complete": {"prompt": "hi"},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
    "/v1/completions": {"prompt": "hi"},
    "/tokenize": {"input": "hi"},
    "/detokenize": {"tokens": [1]},
    "/lora/load": {"path": "no/such/file"},
}
WRONG: tuple[Any, ...] = (
    *("x", "", "é\ud800"[:1], "\0", 1, 0, -1, 1.5, -1e308, 10**30, 10**400, True, False, None),
    *([], [None], [[]], [{}], ["x"], [1], [1.5], [[1], "x"], {}, {"x": 1}, {"1": 2}, {"1": "x"}, [{"type": "x"}]),
)


def operations(client: TestClient[Litestar]) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Path, a valid body, and the schema of each operation with a body that this file has a valid one for."""
    document = client.get("/schema").json()
    for path, base in BASES.items():
        reference = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        yield path, base, {**reference, "components": document["components"]}


def test_every_field_of_every_type_is_taken_or_refused_by_its_name(client: TestClient[Litestar]) -> None:
    n_refused = 0
    for path, base, schema in operations(client):
        validator = jsonschema.Draft202012Validator(schema)
        name = schema["$ref"].rpartition("/")[2]
        for field in schema["components"]["schemas"][name]["properties"]:
            for value in WRONG:
                body = {**base, "max_tokens": 2, field: value}
                response = client.post(path, content=json.dumps(body))
                where = f"{path} {field}={value!r:.60}"
                assert response.status_code in (200, 400), where
                is_valid = validator.is_valid(body)
                if response.status_code == 400:
                    error = response.json()["error"]
                    assert error["message"].isprintable(), where
                    assert len(error["message"]) < 2000, where
                    assert is_valid or str(error["param"]).startswith(field), f"{where}: {error}"
                    n_refused += 1
                else:
                    assert is_valid, f"{where}: accepted against the document"
    assert n_refused > 1000


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "0x10", "01", "1_000", "+1", ".5", "--1"])
@pytest.mark.parametrize("field", ["temperature", "max_tokens", "seed", "logit_bias"])
def test_numbers_that_json_has_not_are_refused(client: TestClient[Litestar], field: str, number: str) -> None:
    value = f'{{"1": {number}}}' if field == "logit_bias" else number
    response = client.post("/complete", content=f'{{"prompt": "hi", "{field}": {value}}}')
    assert response.status_code == 400


@pytest.mark.parametrize("depth", [100, 10_000, 300_000])
@pytest.mark.parametrize("path", sorted(BASES))
def test_nesting_without_end_is_refused(client: TestClient[Litestar], path: str, depth: int) -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        deep = opening * depth + "1" + closing * depth
        body = f'{{"prompt": {deep}, "input": {deep}, "messages": {deep}, "tokens": {deep}, "path": {deep}}}'
        assert client.post(path, content=body).status_code == 400


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"role": "user"},
        {"role": "user", "content": None},
        {"role": "user", "content": 3},
        {"role": "user", "content": {}},
        {"role": "user", "content": [3]},
        {"role": "user", "content": [{"text": "x"}]},
        {"role": "user", "content": [{"type": "text"}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]},
        {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AA=="}}]},
        {"role": "", "content": "x"},
        {"role": None, "content": "x"},
        {"content": "x"},
        "hi",
        None,
        [],
    ],
)
def test_messages_that_say_nothing_are_refused(client: TestClient[Litestar], message: Any) -> None:
    for path in ("/chat", "/chat/stream", "/v1/chat/completions"):
        response = client.post(path, json={"messages": [message]})
        assert response.status_code == 400, path
        assert str(response.json()["error"]["param"]).startswith("messages")


def test_prompts_of_10_mb_are_refused_for_their_length(client: TestClient[Litestar]) -> None:
    text = "word " * 2_000_000
    for path, body in (
        ("/complete", {"prompt": text}),
        ("/v1/completions", {"prompt": [text, text[:5]]}),
        ("/v1/completions", {"prompt": [1] * 2_000_000}),
        ("/chat", {"messages": [{"role": "user", "content": text}]}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x" * 5000}] * 2000}),
    ):
        response = client.post(path, json=body)
        assert response.status_code == 400, path
        assert response.json()["error"]["code"] == "context_length_exceeded"


def test_the_same_field_twice_and_bytes_that_are_no_text_do_no_harm(client: TestClient[Litestar]) -> None:
    assert client.post("/complete", content=b'{"prompt": 3, "prompt": "hi"}').status_code in (200, 400)
    for body in (
        b"\xff\xfe{}",
        b"\0" * 1000,
        b'{"prompt": "\xc3("}',
        b'{"prompt": "\\ud800"}',
        b"\x1f\x8b\x08\0",
        b"%PDF-1.7",
    ):
        assert client.post("/complete", content=body).status_code == 400


def test_compressed_bodies_are_told_to_be_so(client: TestClient[Litestar]) -> None:
    body = gzip.compress(b'{"prompt": "hi"}')
    response = client.post("/complete", content=body, headers={"content-encoding": "gzip"})
    assert response.status_code == 400
    assert response.json()["error"]["message"] == "compressed bodies are not supported: got gzip; send it as it is"
    for encoding in ("identity", "utf-8"):  # the second means nothing, and is sent all the same
        plain = client.post("/complete", json={"prompt": "hi"}, headers={"content-encoding": encoding})
        assert plain.status_code == 200
