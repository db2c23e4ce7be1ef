"""Answers against their schema at the end: repeated, refused, passed on."""

import json
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient

CHAT = {"messages": [{"role": "user", "content": "hi"}]}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
BOTH = CHAT | {"grammar": ".*", "json_schema": SCHEMA, "seed": 1}
GOOD, BAD = ['{"a"', ": 1", "}"], ['{"b"', ": 1", "}"]


def say_by_temperature(model: Any, good_from: float) -> None:
    """The model says what matches from a temperature on."""
    generate = model._generate

    def say(generation: Any, sink: Any) -> None:
        model.pieces_of_seed = {generation.seed: GOOD if generation.sampling.temperature >= good_from else BAD}
        generate(generation, sink)

    model._generate = say


def test_an_answer_that_matches_passes(client: TestClient[Litestar], model: Any) -> None:
    model.pieces = GOOD
    for fields in ({"grammar": ".*", "json_schema": SCHEMA}, {"json_schema": SCHEMA}):
        assert client.post("/chat", json=CHAT | fields).json()["message"]["content"] == '{"a": 1}'
    assert len(model.generations) == 2


def test_what_matches_the_grammar_alone_is_repeated_at_rising_temperature(
    client: TestClient[Litestar], model: Any
) -> None:
    say_by_temperature(model, 1.0)
    response = client.post("/chat", json=BOTH | {"temperature": 0.5})
    assert response.json()["message"]["content"] == '{"a": 1}'
    assert [generation.sampling.temperature for generation in model.generations] == pytest.approx([0.5, 0.8, 1.1])


@pytest.mark.parametrize("path", ["/chat", "/v1/chat/completions"])
def test_after_three_repeats_it_is_400_with_what_does_not_match(
    client: TestClient[Litestar], model: Any, path: str
) -> None:
    model.pieces = BAD
    response = client.post(path, json=BOTH)
    assert response.status_code == 400
    assert "'a' is a required property" in response.json()["error"]["message"]
    assert len(model.generations) == 4


def test_a_streamed_answer_is_held_until_it_matches(client: TestClient[Litestar], model: Any) -> None:
    say_by_temperature(model, 0.5)
    events = client.post("/chat/stream", json=BOTH).text.split("\n\n")[:-1]
    pieces = [json.loads(event.removeprefix("data: ")) for event in events]
    assert [piece["delta"] for piece in pieces] == [*GOOD, ""]
    assert len(model.generations) == 3


def test_a_streamed_answer_that_never_matches_ends_with_an_error_event(
    client: TestClient[Litestar], model: Any
) -> None:
    model.pieces = BAD
    assert "required property" in client.post("/chat/stream", json=BOTH).text
    assert len(model.generations) == 4


def test_choices_are_checked_one_by_one(client: TestClient[Litestar], model: Any) -> None:
    model.pieces = GOOD
    generate = model._generate

    def say(generation: Any, sink: Any) -> None:
        is_bad = generation.seed == 2 and generation.sampling.temperature == 0
        model.pieces_of_seed = {2: BAD} if is_bad else {}
        generate(generation, sink)

    model._generate = say
    response = client.post("/v1/chat/completions", json=BOTH | {"n": 3})
    assert [choice["message"]["content"] for choice in response.json()["choices"]] == ['{"a": 1}'] * 3
    assert [choice["index"] for choice in response.json()["choices"]] == [0, 1, 2]
    assert len(model.generations) == 4


def test_an_answer_cut_by_max_tokens_is_not_checked(client: TestClient[Litestar], model: Any) -> None:
    model.pieces = BAD
    response = client.post("/v1/chat/completions", json=BOTH | {"max_tokens": 2})
    (choice,) = response.json()["choices"]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("length", '{"b": 1')
    assert len(model.generations) == 1


def test_an_answer_ended_by_a_stop_string_is_not_checked(client: TestClient[Litestar], model: Any) -> None:
    model.pieces, model.stop_string = BAD, "}"
    assert client.post("/chat", json=BOTH).status_code == 200
    assert len(model.generations) == 1


def test_one_json_object_is_not_checked(client: TestClient[Litestar], model: Any) -> None:
    model.pieces = GOOD
    assert client.post("/chat", json=CHAT | {"response_format": {"type": "json_object"}}).status_code == 200
    assert len(model.generations) == 1


def test_a_schema_that_is_too_complex_to_check_is_400_where_the_check_decides(
    client: TestClient[Litestar], model: Any
) -> None:
    model.pieces = ["1"]
    branching = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)} | {"d40": {}}
    schema = {"$ref": "#/$defs/d0", "$defs": branching}
    assert client.post("/chat", json=CHAT | {"json_schema": schema}).status_code == 200
    response = client.post("/chat", json=CHAT | {"grammar": "1", "json_schema": schema})
    assert (response.status_code, response.json()["error"]["param"]) == (400, "json_schema")
