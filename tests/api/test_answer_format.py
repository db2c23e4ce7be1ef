"""`grammar`, `json_schema` and `response_format`, on every endpoint of text."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from modelc.api.answer_format import ANY_TEXT, FormatFields, format_of
from modelc.api.fields import decode_fields
from modelc.constraints import Constraint
from modelc.errors import BadInputError

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
TEXT = json.dumps(SCHEMA)
CHAT = {"messages": [{"role": "user", "content": "hi"}]}
ENDPOINTS = {
    "/chat": CHAT,
    "/chat/stream": CHAT,
    "/v1/chat/completions": CHAT,
    "/complete": {"prompt": "x"},
    "/v1/completions": {"prompt": "x"},
}


def fields_of(**fields: Any) -> FormatFields:
    return decode_fields(json.dumps(fields).encode(), FormatFields)


# ------------------------------------------------------------------------------------------------------ the fields


@pytest.mark.parametrize(
    ("fields", "constraint"),
    [
        ({}, None),
        ({"grammar": None, "json_schema": None, "response_format": None}, None),
        ({"grammar": ""}, None),
        ({"response_format": {"type": "text"}}, None),
        ({"grammar": "[a-z]+"}, Constraint("regex", "[a-z]+")),
        ({"grammar": 'root ::= "x"'}, Constraint("gbnf", 'root ::= "x"')),
        ({"json_schema": SCHEMA}, Constraint("json_schema", TEXT)),
        ({"json_schema": TEXT}, Constraint("json_schema", TEXT)),
        ({"json_schema": True}, Constraint("json_schema", "true")),
        ({"response_format": {"type": "json_object"}}, Constraint("json_object")),
        ({"response_format": {"type": "json_object", "schema": SCHEMA}}, Constraint("json_schema", TEXT)),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "n", "strict": True, "schema": SCHEMA},
                }
            },
            Constraint("json_schema", TEXT),
        ),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "n"}}}, Constraint("json_object")),
        ({"grammar": "[0-9]+", "json_schema": SCHEMA}, Constraint("regex", "[0-9]+")),
    ],
)
def test_fields_become_a_constraint(fields: dict[str, Any], constraint: Constraint | None) -> None:
    wanted = format_of(fields_of(**fields))
    assert wanted.constraint == constraint
    assert wanted.is_checked_only == ("grammar" in fields and bool(fields.get("json_schema")))


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        ({"json_schema": {"type": 5}}, "json_schema/type"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "x"}}}},
            "response_format.json_schema.schema/type",
        ),
        ({"json_schema": "{"}, "json_schema"),
        ({"json_schema": False}, "json_schema"),
        ({"json_schema": {}, "response_format": {"type": "json_object"}}, "response_format"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(BadInputError) as caught:
        format_of(fields_of(**fields))
    assert caught.value.param == param


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"grammar": 5}, "grammar"),
        ({"json_schema": 5}, "json_schema"),
        ({"json_schema": [1]}, "json_schema"),
        ({"response_format": "json"}, "response_format"),
        ({"response_format": {}}, "response_format.type"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema", "json_schema": []}}, "response_format.json_schema"),
    ],
)
def test_wrong_types_are_400_on_every_endpoint(
    client: TestClient[Litestar], fields: dict[str, Any], param: str
) -> None:
    for path, body in ENDPOINTS.items():
        response = client.post(path, json=body | fields)
        assert (response.status_code, response.json()["error"]["param"]) == (400, param)


# ------------------------------------------------------------------------------------------------- on their way


def test_the_constraint_reaches_the_sampler_of_every_endpoint(client: TestClient[Litestar], model: Any) -> None:
    for path, body in ENDPOINTS.items():
        assert client.post(path, json=body | {"grammar": "[a-z]+"}).status_code == 200
    assert [generation.sampling.constraint for generation in model.generations] == [Constraint("regex", "[a-z]+")] * 5


def test_every_sampling_field_reaches_the_sampler(client: TestClient[Litestar], model: Any) -> None:
    fields = {
        "typical_p": 0.5,
        "top_n_sigma": 1.5,
        "xtc_probability": 0.25,
        "xtc_threshold": 0.2,
        "mirostat": 2,
        "mirostat_tau": 4.0,
        "mirostat_eta": 0.2,
        "dry_multiplier": 0.8,
        "dry_base": 1.5,
        "dry_allowed_length": 3,
        "dry_penalty_last_n": 64,
        "dry_sequence_breakers": ["\n", "."],
    }
    for path, body in ENDPOINTS.items():
        assert client.post(path, json=body | fields).status_code == 200
    for generation in model.generations:
        for name, value in fields.items():
            assert getattr(generation.sampling, name) == (tuple(value) if isinstance(value, list) else value)


def test_json_modes_tell_the_model_what_is_wanted(client: TestClient[Litestar], model: Any) -> None:
    for fields in ({"json_schema": True}, {"response_format": {"type": "json_object"}}, {"grammar": "[^x]*"}):
        client.post("/chat", json=CHAT | fields)
    told = [messages[0] for messages in model.messages]
    assert [message["role"] for message in told] == ["system", "system", "user"]
    assert "JSON schema" in told[0]["content"]
    assert told[1]["content"] == "Answer with one JSON object and nothing else."


def test_the_instruction_follows_the_system_message_that_is_there() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]
    told = format_of(fields_of(json_schema=SCHEMA)).told(messages, 100)
    assert told[0]["content"].startswith("Be brief.\n\nAnswer with JSON")
    assert told[0]["content"].endswith(TEXT)
    assert told[1:] == messages[1:]
    assert messages[0]["content"] == "Be brief.", "the request's own is left as it is"
    assert ANY_TEXT.told(messages, 100) == messages


def test_developers_are_told_as_the_system_is() -> None:
    messages = [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "hi"}]
    told = format_of(fields_of(json_schema=SCHEMA)).told(messages, 100)
    assert [message["role"] for message in told] == ["developer", "user"]
    assert told[0]["content"].startswith("Be brief.\n\nAnswer with JSON")


def test_a_schema_that_would_fill_the_context_is_not_told() -> None:
    wanted = format_of(fields_of(json_schema={"enum": ["x" * 1000]}))
    for n_ctx, is_told in ((8192, True), (1000, False)):
        (told, _) = wanted.told(CHAT["messages"], n_ctx)
        assert ("xxx" in told["content"]) == is_told
        assert told["content"].startswith("Answer with JSON")
    (told, _) = format_of(fields_of(json_schema={"enum": ["x" * 10_000]})).told(CHAT["messages"], 1 << 20)
    assert "xxx" not in told["content"]


def test_a_lenient_server_ignores_what_cannot_be_followed(
    client_of: Callable[..., TestClient[Litestar]], model: Any
) -> None:
    def refuse(constraint: Constraint) -> None:
        raise BadInputError("not a regular expression", param="grammar")

    model.check_constraint = refuse
    body = CHAT | {"grammar": "["}
    assert client_of(model).post("/chat", json=body).status_code == 400
    assert client_of(model, lenient_grammar=True).post("/chat", json=body).status_code == 200
    assert model.generations[-1].sampling.constraint is None
    assert (
        client_of(model, lenient_grammar=True).post("/chat", json=CHAT | {"json_schema": {"type": 5}}).status_code
        == 200
    )


def test_reasoning_that_the_prompt_opens_is_free(client: TestClient[Litestar], model: Any) -> None:
    model.pieces = ["so", "</think>", '{"a": 1}']
    body = {"messages": [{"role": "user", "content": "hi <think>"}], "json_schema": SCHEMA}
    message = client.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("so", '{"a": 1}')
    assert model.generations[-1].sampling.constraint == Constraint("json_schema", TEXT, after="</think>")
    client.post("/v1/chat/completions", json=body | CHAT)
    assert model.generations[-1].sampling.constraint == Constraint("json_schema", TEXT)


def test_models_that_know_of_reasoning_may_open_it_themselves(client: TestClient[Litestar], model: Any) -> None:
    model.chat_template = "{{ messages }}{% if think is false %}<think></think>{% endif %}"
    for pieces in (["<think>so", "</think>\n\n", '{"a": 1}'], ['{"a": 1}']):
        model.pieces = pieces
        message = client.post("/chat", json=CHAT | {"json_schema": SCHEMA}).json()["message"]
        assert message["content"] == '{"a": 1}'
        constraint = Constraint("json_schema", TEXT, after="</think>", opener="<think>")
        assert model.generations[-1].sampling.constraint == constraint
    ended = {"messages": [{"role": "user", "content": "hi <think></think>"}], "json_schema": SCHEMA}
    client.post("/chat", json=ended)
    assert model.generations[-1].sampling.constraint == Constraint("json_schema", TEXT), "where the prompt has no end"


def test_only_what_stands_behind_the_reasoning_is_checked() -> None:
    wanted = format_of(fields_of(json_schema=SCHEMA))
    assert wanted.mismatch('so</think>{"a": 1}') is not None
    assert wanted.behind("</think>").mismatch('so</think>{"a": 1}') is None
    assert wanted.behind("</think>").mismatch('so</think>{"a": "x"}') is not None
    may_reason = wanted.behind("</think>", "<think>")
    assert may_reason.mismatch('<think>so</think>{"a": 1}') is None
    assert may_reason.mismatch('{"a": 1}') is None
    assert may_reason.mismatch('{"a": "</think>"}') is not None
    assert ANY_TEXT.behind("</think>").mismatch("x") is None
