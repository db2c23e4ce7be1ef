"""Messages as chat templates take them."""

import pytest

from modelc.api.fields import decode_fields
from modelc.api.messages import template_messages
from modelc.api.prompts import ChatFields
from modelc.errors import BadInputError, ModelcError, UnsupportedError


def taken(messages: str) -> list[dict[str, str]]:
    return template_messages(decode_fields(f'{{"messages": {messages}}}'.encode(), ChatFields).messages)


def test_text_parts_are_joined_by_line_breaks() -> None:
    parts = '[{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]'
    assert taken(f'[{{"role": "user", "content": {parts}}}]') == [{"role": "user", "content": "a\nb"}]


def test_names_stay_and_fields_that_templates_do_not_know_go() -> None:
    message = '{"role": "tool", "content": "4", "name": "add", "tool_call_id": "x", "tool_calls": []}'
    assert taken(f"[{message}]") == [{"role": "tool", "content": "4", "name": "add"}]


def test_developer_is_the_system() -> None:
    assert taken('[{"role": "developer", "content": "be brief"}]') == [{"role": "system", "content": "be brief"}]


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
        ('[{"role": "assistant", "tool_calls": [{}]}]', UnsupportedError, "messages[0].tool_calls"),
    ],
)
def test_a_wrong_message_is_named_with_its_place(messages: str, error: type[ModelcError], param: str) -> None:
    with pytest.raises(error) as caught:
        taken(messages)
    assert caught.value.param == param
