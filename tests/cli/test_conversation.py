import contextlib

import pytest

from modelc.cli.conversation import Conversation
from modelc.errors import BadFileError, BadInputError
from tests.cli.talking_model import TalkingModel


@pytest.fixture
def model() -> TalkingModel:
    return TalkingModel()


@pytest.fixture
def conversation(model: TalkingModel) -> Conversation:
    return Conversation(model, {"max_tokens": 50}, "be brief")  # type: ignore[arg-type]  # a fake


def test_each_answer_knows_what_was_said_before(conversation: Conversation, model: TalkingModel) -> None:
    assert "".join(conversation.ask("one two")) == "one two "
    assert list(conversation.ask("three")) == ["three "]
    assert [(m["role"], m["content"]) for m in model.conversations[-1]] == [
        ("system", "be brief"),
        ("user", "one two"),
        ("assistant", "one two "),
        ("user", "three"),
    ]


def test_a_closed_answer_stops_the_model_and_stays_as_far_as_it_came(conversation: Conversation) -> None:
    with contextlib.closing(conversation.ask("for ever")) as pieces:
        assert next(pieces) == "for "
    assert [m["content"] for m in conversation.messages] == ["for ever", "for "]
    assert conversation.last is not None and conversation.last.finish_reason == "cancelled"


def test_a_failed_answer_is_told_and_what_came_of_it_is_kept(conversation: Conversation) -> None:
    with pytest.raises(BadFileError, match="the file changed"):
        list(conversation.ask("fail now"))
    assert [m["content"] for m in conversation.messages] == ["fail now", "fail "]


def test_old_messages_are_left_out_where_the_context_is_too_short(
    conversation: Conversation, model: TalkingModel
) -> None:
    for letter in "abcd":
        assert "".join(conversation.ask(letter * 30))
    assert conversation.left_out == 4
    assert [m["content"][:2] for m in model.conversations[-1]] == ["be", "cc", "cc", "dd"]
    assert len(conversation.messages) == 8


def test_a_message_longer_than_the_context_is_refused_and_forgotten(conversation: Conversation) -> None:
    for text in ("x" * 250, "x" * 4000):
        with pytest.raises(BadInputError, match="longer than the context"):
            list(conversation.ask(text))
    assert conversation.messages == []


def test_options_are_checked_before_they_hold(conversation: Conversation, model: TalkingModel) -> None:
    with pytest.raises(BadInputError, match="temperature"):
        conversation.set(temperature=-1.0)
    conversation.set(temperature=0.5, max_tokens=None)
    list(conversation.ask("hello"))
    assert (model.samplings[-1].temperature, model.samplings[-1].max_tokens) == (0.5, 128)


def test_the_last_answers_speed_is_told(conversation: Conversation) -> None:
    list(conversation.ask("one two three"))
    text = str(conversation.last)
    assert text.startswith("21 prompt tokens (2 cached), first token after 0.0")
    assert ", 3 tokens, " in text and text.endswith("tokens/s")
