import pytest

from modelc.errors import BadInputError
from modelc.text.chat_messages import join_parts, merge_system, parts_of


def test_text_stays_and_other_fields_are_kept() -> None:
    message = {"role": "user", "content": "hi", "name": "ann"}
    assert join_parts([message]) == [message]


def test_text_parts_are_joined() -> None:
    content = [{"type": "text", "text": "a"}, "b", {"type": "text", "text": "c"}]
    assert join_parts([{"role": "user", "content": content}]) == [{"role": "user", "content": "a\nb\nc"}]
    assert join_parts([{"role": "user", "content": []}]) == [{"role": "user", "content": ""}]


def test_no_content_is_none_beside_tool_calls_and_empty_otherwise() -> None:
    calls = [{"type": "function"}]
    assert join_parts([{"role": "assistant", "tool_calls": calls}])[0]["content"] is None
    assert join_parts([{"role": "assistant", "content": None, "tool_calls": []}])[0]["content"] == ""
    assert join_parts([{"role": "assistant"}])[0]["content"] == ""


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([], "the conversation is empty: 'messages': expected at least one message"),
        ("hi", "the conversation has the wrong type: 'messages': expected a list of messages"),
        ({"role": "user"}, "the conversation has the wrong type: 'messages': expected a list of messages"),
        (["hi"], "a message has the wrong type: 'messages[0]': expected an object with role and content"),
        ([{"content": "x"}], "a message has no role: 'messages[0].role': expected system, user, assistant or tool"),
        (
            [{"role": "user", "content": 7}],
            "a message's content has the wrong type: 'messages[0].content': expected text",
        ),
        (
            [{"role": "user", "content": "x"}, {"role": "user", "content": [{"type": "image_url"}]}],
            "this type of content is not supported: 'messages[1].content[0].type': got image_url, expected text",
        ),
        (
            [{"role": "user", "content": [{"type": "text"}]}],
            "a content part has no text: 'messages[0].content[0].text': expected text",
        ),
        (
            [{"role": "user", "content": [7]}],
            "a content part has the wrong type: 'messages[0].content[0]': expected an object of type text",
        ),
    ],
)
def test_malformed_messages_are_one_line_with_the_field(messages: object, message: str) -> None:
    with pytest.raises(BadInputError) as caught:
        join_parts(messages)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_texts_become_parts() -> None:
    calls = {"role": "assistant", "content": None, "tool_calls": [1]}
    assert parts_of([{"role": "user", "content": "a"}, calls]) == [
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        calls,
    ]


def test_what_the_system_says_goes_before_the_users_next_words() -> None:
    system, user = {"role": "system", "content": "S"}, {"role": "user", "content": "U"}
    answer = {"role": "assistant", "content": "A"}
    assert merge_system([system, user, answer]) == [{"role": "user", "content": "S\n\nU"}, answer]
    assert merge_system([system, system, answer, user]) == [answer, {"role": "user", "content": "S\n\nS\n\nU"}]
    assert merge_system([user, system]) == [user, {"role": "user", "content": "S"}]
