"""Tools: how they are offered, demanded, called and answered, in OpenAI's shapes."""

import json
from typing import Any

import jsonschema
import pytest
from litestar import Litestar
from litestar.testing import TestClient

from modelc.api.tools import Function, Tool, call_schema, takes_tools
from modelc.constraints import Constraint
from tests.api.test_chat_completions import HELLO, URL, chunks_of

PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
ADD = {"type": "function", "function": {"name": "add", "description": "Adds", "parameters": PARAMETERS}}
NOW = {"type": "function", "function": {"name": "now"}}
WITH_TOOLS = {**HELLO, "tools": [ADD, NOW]}
CALLS = (
    "<tool_",
    'call>\n{"name": "add", ',
    '"arguments": {"a"',
    ": 4}}\n</tool_call>",
    '\n<tool_call>{"name": "now"}',
)
KNOWS_TOOLS = "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}{{ messages }}"
NAMED = {"type": "function", "function": {"name": "now"}}


@pytest.fixture(autouse=True)
def room_for_instructions(model: Any) -> None:
    model.n_ctx = 3000


def ask(client: TestClient[Litestar], **fields: Any) -> Any:
    response = client.post(URL, json={**WITH_TOOLS, **fields})
    assert response.status_code == 200, response.text
    return response.json()["choices"][0]


def test_calls_are_read_from_what_the_model_writes(client: TestClient[Litestar], model: Any) -> None:
    model.pieces = CALLS
    choice = ask(client)
    calls = choice["message"].pop("tool_calls")
    assert choice["message"] == {"role": "assistant", "content": None, "refusal": None}
    assert choice["finish_reason"] == "tool_calls"
    assert [call["function"] for call in calls] == [
        {"name": "add", "arguments": '{"a": 4}'},
        {"name": "now", "arguments": "{}"},
    ]
    assert all(call["id"].startswith("call_") and call["type"] == "function" for call in calls)
    assert calls[0]["id"] != calls[1]["id"]


def test_words_beside_calls_stay_and_an_answer_without_calls_has_no_field_for_them(
    client: TestClient[Litestar], model: Any
) -> None:
    model.pieces = ("Let me ", "see. ", *CALLS)
    assert ask(client)["message"]["content"] == "Let me see. "
    model.pieces = ("Four.",)
    choice = ask(client)
    assert (choice["message"]["content"], choice["finish_reason"]) == ("Four.", "stop")
    assert "tool_calls" not in choice["message"]


def test_a_call_that_is_cut_ends_with_length(client: TestClient[Litestar], model: Any) -> None:
    model.pieces = CALLS
    choice = ask(client, max_tokens=3)
    assert choice["finish_reason"] == "length"
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a"'}


def test_streamed_calls_have_a_name_once_and_arguments_piece_by_piece(client: TestClient[Litestar], model: Any) -> None:
    model.pieces = CALLS
    chunks = chunks_of(client.post(URL, json={**WITH_TOOLS, "stream": True}))
    first, *deltas, last = [chunk["choices"][0] for chunk in chunks]
    assert first["delta"] == {"role": "assistant", "content": ""}
    assert (last["delta"], last["finish_reason"]) == ({}, "tool_calls")
    calls = [delta["delta"]["tool_calls"][0] for delta in deltas]
    ids = [call.pop("id") for call in calls if "id" in call]
    assert calls == [
        {"index": 0, "type": "function", "function": {"name": "add", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"a"'}},
        {"index": 0, "function": {"arguments": ": 4}"}},
        {"index": 1, "type": "function", "function": {"name": "now", "arguments": ""}},
        {"index": 1, "function": {"arguments": "{}"}},
    ]
    assert len(set(ids)) == 2


def test_one_call_where_no_others_are_wanted(client: TestClient[Litestar], model: Any) -> None:
    model.pieces = CALLS
    assert len(ask(client, parallel_tool_calls=False)["message"]["tool_calls"]) == 1


@pytest.mark.parametrize("fields", [{"tool_choice": "none"}, {"tools": None}, {"tools": [], "tool_choice": "auto"}])
def test_nothing_is_offered_or_read_where_no_tools_are_wanted(
    client: TestClient[Litestar], model: Any, fields: dict[str, Any]
) -> None:
    model.pieces = CALLS
    choice = ask(client, **fields)
    assert (choice["message"]["content"], choice["finish_reason"]) == ("".join(CALLS), "stop")
    assert model.template_variables == [{"tools": None}]
    assert [message["role"] for message in model.messages[0]] == ["user"]


def test_a_template_that_knows_tools_gets_them(client_of: Any, model: Any) -> None:
    model.chat_template = KNOWS_TOOLS
    assert takes_tools(KNOWS_TOOLS)
    client_of(model).post(URL, json=WITH_TOOLS)
    (variables,) = model.template_variables
    assert variables["tools"][0] == ADD
    assert variables["tools"][1]["function"]["parameters"] == {"type": "object", "properties": {}}
    assert [message["role"] for message in model.messages[0]] == ["user"]


@pytest.mark.parametrize("template", [None, "{{ messages }}"])
def test_for_other_templates_the_system_offers_them(client_of: Any, model: Any, template: str | None) -> None:
    model.chat_template = template
    assert not takes_tools(template)
    client_of(model).post(URL, json=WITH_TOOLS)
    system = {"role": "system", "content": "Be brief."}
    client_of(model).post(URL, json={**WITH_TOOLS, "messages": [system, *HELLO["messages"]]})
    for messages in model.messages:
        assert [message["role"] for message in messages] == ["system", "user"]
        assert json.dumps(ADD) in messages[0]["content"]
        assert "<tool_call>" in messages[0]["content"]
    assert model.messages[1][0]["content"].startswith("Be brief.\n\n")


HISTORY = [
    {"role": "user", "content": "2 + 2?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_123456789abc", "type": "function", "function": {"name": "add", "arguments": '{"a": 4}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "call_123456789abc", "content": "4"},
]


def test_calls_and_results_in_the_history_reach_templates_that_know_them(client_of: Any, model: Any) -> None:
    model.chat_template = KNOWS_TOOLS
    client_of(model).post(URL, json={**WITH_TOOLS, "messages": HISTORY})
    _, call, result = model.messages[0]
    assert call["tool_calls"][0]["function"] == {"name": "add", "arguments": {"a": 4}}
    assert result == {"role": "tool", "content": "4", "tool_call_id": "call_123456789abc"}
    model.chat_template = KNOWS_TOOLS + "{# [TOOL_CALLS] #}"
    client_of(model).post(URL, json={**WITH_TOOLS, "messages": HISTORY})
    assert [model.messages[1][1]["tool_calls"][0]["id"], model.messages[1][2]["tool_call_id"]] == ["456789abc"] * 2


def test_and_others_as_text(client: TestClient[Litestar], model: Any) -> None:
    client.post(URL, json={**HELLO, "messages": HISTORY})
    assert model.messages == [
        [
            HISTORY[0],
            {
                "role": "assistant",
                "content": '<tool_call>\n{"name": "add", "arguments": {"a": 4}}\n</tool_call>',
            },
            {"role": "user", "content": "<tool_response>\n4\n</tool_response>"},
        ]
    ]


@pytest.mark.parametrize(
    ("choice", "fields", "names", "has_many"),
    [
        ("required", {}, {"add", "now"}, True),
        ("required", {"parallel_tool_calls": True}, {"add", "now"}, True),
        ("required", {"parallel_tool_calls": False}, {"add", "now"}, False),
        (NAMED, {}, {"now"}, False),
        (NAMED, {"parallel_tool_calls": True}, {"now"}, True),
        (NAMED, {"parallel_tool_calls": False}, {"now"}, False),
    ],
)
def test_calls_that_are_demanded_are_constrained_by_the_schema(
    client: TestClient[Litestar], model: Any, choice: Any, fields: dict[str, Any], names: set[str], has_many: bool
) -> None:
    model.pieces = ('{"name": "now", "argu', 'ments": {}}')
    answer = ask(client, tool_choice=choice, **fields)
    assert answer["finish_reason"] == "tool_calls"
    assert answer["message"]["tool_calls"][0]["function"] == {"name": "now", "arguments": "{}"}
    constraint = model.generations[0].sampling.constraint
    assert isinstance(constraint, Constraint)
    assert constraint.kind == "json_schema"
    is_valid = jsonschema.Draft202012Validator(json.loads(constraint.source)).is_valid
    for name in ("add", "now", "sub"):
        call = {"name": name, "arguments": {"a": 1}}
        assert is_valid([call] if has_many else call) == (name in names)
        assert is_valid([call, call]) == (has_many and name in names)
        assert not is_valid(call if has_many else [call])
    assert not is_valid([])
    assert not is_valid({"name": "add", "arguments": {}})


@pytest.mark.parametrize("streams", [False, True])
def test_a_list_of_demanded_calls_is_read_as_calls(client: TestClient[Litestar], model: Any, streams: bool) -> None:
    model.pieces = ('[{"name": "add", "arguments": {"a"', ": 1}}, {", '"name": "now", "arguments": {}}', "]")
    body = {**WITH_TOOLS, "tool_choice": "required", "stream": streams}
    response = client.post(URL, json=body)
    if not streams:
        choice = response.json()["choices"][0]
        assert (choice["message"]["content"], choice["finish_reason"]) == (None, "tool_calls")
        calls = [call["function"] for call in choice["message"]["tool_calls"]]
    else:
        deltas = [chunk["choices"][0]["delta"] for chunk in chunks_of(response)]
        assert not any(delta.get("content") for delta in deltas)
        calls = [{}, {}]
        for delta in (each for d in deltas for each in d.get("tool_calls", [])):
            for key, text in delta["function"].items():
                calls[delta["index"]][key] = calls[delta["index"]].get(key, "") + text
    assert calls == [{"name": "add", "arguments": '{"a": 1}'}, {"name": "now", "arguments": "{}"}]


def test_a_call_is_demanded_behind_the_reasoning_that_the_template_opens(
    client: TestClient[Litestar], model: Any
) -> None:
    model.pieces = ("Hm", "</think>", '{"name": "now", "arguments": {}}')
    history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "<think>"}]
    message = ask(client, tool_choice=NAMED, messages=history)["message"]
    assert message["reasoning_content"] == "Hm"
    assert message["tool_calls"][0]["function"]["name"] == "now"
    assert model.generations[0].sampling.constraint.after == "</think>"


def test_references_in_parameters_hold_in_the_schema_of_the_call() -> None:
    node = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/node"}, "v": {"type": "integer"}},
        "required": ["v"],
    }
    parameters = {"properties": {"list": {"$ref": "#/$defs/node"}}, "required": ["list"], "$defs": {"node": node}}
    schema = call_schema([Tool(function=Function("f", parameters=parameters)), Tool(function=Function("g"))])
    valid = jsonschema.Draft202012Validator(schema).is_valid
    assert valid({"name": "f", "arguments": {"list": {"v": 1, "next": {"v": 2}}}})
    assert not valid({"name": "f", "arguments": {"list": {"v": 1, "next": {}}}})
    assert not valid({"name": "f", "arguments": []})
    assert not valid({"name": "f", "arguments": {"list": {"v": 1}, "more": 1}})  # not listed, so not meant
    assert valid({"name": "g", "arguments": {"anything": 1}})


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": {}}, "tools"),
        ({"tools": [{"type": "retrieval"}]}, "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"tools": [{"function": {}}]}, "tools[0].function.name"),
        ({"tools": [{"function": {"name": ""}}]}, "tools[0].function.name"),
        ({"tools": [{"function": {"name": "a b"}}]}, "tools[0].function.name"),
        ({"tools": [{"function": {"name": "f", "parameters": []}}]}, "tools[0].function.parameters"),
        (
            {"tools": [{"function": {"name": "f", "parameters": {"type": "string"}}}]},
            "tools[0].function.parameters.type",
        ),
        ({"tools": [ADD, ADD]}, "tools"),
        ({"tools": [ADD] * 129}, "tools"),
        ({"tool_choice": "any"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "sub"}}}, "tool_choice"),
        ({"tool_choice": {"type": "function"}}, "tool_choice.function"),
        ({"tool_choice": "required", "tools": []}, "tool_choice"),
        ({"parallel_tool_calls": "no"}, "parallel_tool_calls"),
        ({"chat_template_kwargs": []}, "chat_template_kwargs"),
        ({"chat_template_kwargs": {"messages": []}}, "chat_template_kwargs"),
        ({"chat_template_kwargs": {"self": 1}}, "chat_template_kwargs"),
    ],
    ids=str,
)
def test_what_is_wrong_is_named(client: TestClient[Litestar], model: Any, fields: dict[str, Any], param: str) -> None:
    response = client.post(URL, json={**WITH_TOOLS, **fields})
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)
    assert model.generations == []


def test_parameters_that_are_nested_too_deeply_are_refused(client: TestClient[Litestar]) -> None:
    tool = '{"type":"function","function":{"name":"f","parameters":' + '{"items":' * 600 + "{}" + "}" * 600 + "}}"
    messages = '[{"role": "user", "content": "hi"}]'
    for choice in ("auto", "required"):
        body = f'{{"messages": {messages}, "tools": [{tool}], "tool_choice": "{choice}"}}'
        response = client.post(URL, content=body)
        assert (response.status_code, response.json()["error"]["type"]) == (400, "invalid_request_error")


def test_variables_reach_the_template(client: TestClient[Litestar], model: Any) -> None:
    for path in ("/chat", URL):
        client.post(path, json={**HELLO, "chat_template_kwargs": {"enable_thinking": False}})
    assert model.template_variables == [{"tools": None, "enable_thinking": False}] * 2


def test_reasoning_has_a_field_of_its_own(client: TestClient[Litestar], model: Any) -> None:
    model.pieces = ("<th", "ink>\nHm", ", yes.\n</", "think>\n\n", "Paris", ".")
    choice = client.post(URL, json=HELLO).json()["choices"][0]
    assert choice["message"]["reasoning_content"] == "Hm, yes."
    assert choice["message"]["content"] == "Paris."
    chunks = chunks_of(client.post(URL, json={**HELLO, "stream": True}))
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == "Hm, yes."
    assert "".join(delta.get("content", "") for delta in deltas) == "Paris."


def test_reasoning_that_the_template_opens_is_reasoning(client: TestClient[Litestar], model: Any) -> None:
    model.pieces = ("Hm", "</think>", "Paris")
    messages = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "<think>"}]
    choice = client.post(URL, json={"messages": messages}).json()["choices"][0]
    assert choice["message"]["reasoning_content"] == "Hm"
    assert choice["message"]["content"] == "Paris"
