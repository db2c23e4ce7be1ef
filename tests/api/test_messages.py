"""Messages as chat templates take them."""

from typing import Any

import pytest

from modelc.api.fields import decode_fields
from modelc.api.messages import arguments_as_text, template_messages, with_short_ids
from modelc.api.prompts import ChatFields
from modelc.errors import BadInputError, ModelcError, UnsupportedError

CALL = '{"id": "call_0123456789abcdef", "type": "function", "function": {"name": "add", "arguments": "%s"}}'


def taken(messages: str) -> list[dict[str, Any]]:
    return template_messages(decode_fields(f'{{"messages": {messages}}}'.encode(), ChatFields).messages)


def test_text_parts_are_joined_by_line_breaks() -> None:
    parts = '[{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]'
    assert taken(f'[{{"role": "user", "content": {parts}}}]') == [{"role": "user", "content": "a\nb"}]


def test_names_and_ids_stay_and_fields_that_templates_do_not_know_go() -> None:
    message = '{"role": "tool", "content": "4", "name": "add", "tool_call_id": "x", "tool_calls": [], "refusal": null}'
    assert taken(f"[{message}]") == [{"role": "tool", "content": "4", "name": "add", "tool_call_id": "x"}]


def test_reasoning_stays_for_templates_that_show_it() -> None:
    message = '{"role": "assistant", "content": "4", "reasoning_content": "2 + 2"}'
    assert taken(f"[{message}]") == [{"role": "assistant", "content": "4", "reasoning_content": "2 + 2"}]


@pytest.mark.parametrize(
    ("text", "arguments", "as_text"),
    [
        (r"{\"a\": [1, \"é\"]}", {"a": [1, "é"]}, '{"a": [1, "é"]}'),
        ("", "", ""),
        ("[1]", "[1]", "[1]"),
        (r"{\"a\":", '{"a":', '{"a":'),
    ],
)
def test_arguments_are_objects_where_they_can_be(text: str, arguments: object, as_text: str) -> None:
    messages = taken(f'[{{"role": "assistant", "tool_calls": [{CALL % text}]}}]')
    function = {"name": "add", "arguments": arguments}
    call = {"id": "call_0123456789abcdef", "type": "function", "function": function}
    assert messages == [{"role": "assistant", "content": None, "tool_calls": [call]}]
    (call,) = arguments_as_text(messages)[0]["tool_calls"]
    assert call["function"] == {"name": "add", "arguments": as_text}


def test_short_ids_have_nine_letters_and_digits_and_stay_the_same_in_call_and_result() -> None:
    call, result = CALL % "{}", '{"role": "tool", "content": "4", "tool_call_id": "call_0123456789abcdef"}'
    messages = with_short_ids(taken(f'[{{"role": "assistant", "tool_calls": [{call}]}}, {result}]'))
    assert messages[0]["tool_calls"][0]["id"] == messages[1]["tool_call_id"] == "789abcdef"
    assert with_short_ids(taken('[{"role": "tool", "content": "", "tool_call_id": "c-1"}]'))[0]["tool_call_id"] == (
        "0000000c1"
    )


@pytest.mark.parametrize(
    ("messages", "error", "param"),
    [
        ("[]", BadInputError, "messages"),
        ('["hi"]', BadInputError, "messages[0]"),
        ('[{"content": "hi"}]', BadInputError, "messages[0].role"),
        ('[{"role": "", "content": "hi"}]', BadInputError, "messages[0].role"),
        ('[{"role": "user", "content": 5}]', BadInputError, "messages[0].content"),
        ('[{"role": "user", "content": "a"}, {"role": "user"}]', BadInputError, "messages[1].content"),
        ('[{"role": "user", "content": [{"type": "text"}]}]', BadInputError, "messages[0].content[0].text"),
        ('[{"role": "user", "content": [{"type": "image_url"}]}]', UnsupportedError, "messages[0].content[0].type"),
        ('[{"role": "assistant", "tool_calls": [{}]}]', BadInputError, "messages[0].tool_calls[0].id"),
        ('[{"role": "assistant", "tool_calls": []}]', BadInputError, "messages[0].content"),
        (
            '[{"role": "assistant", "tool_calls": [{"id": "x", "type": "custom", "function": {}}]}]',
            BadInputError,
            "messages[0].tool_calls[0].type",
        ),
    ],
)
def test_a_wrong_message_is_named_with_its_place(messages: str, error: type[ModelcError], param: str) -> None:
    with pytest.raises(error) as caught:
        taken(messages)
    assert caught.value.param == param
