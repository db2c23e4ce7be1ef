import json
from pathlib import Path

import pytest

from modelc.cli.chat_commands import CHAT_COMMANDS, LeaveChat, obey
from modelc.cli.conversation import Conversation
from modelc.errors import BadInputError
from tests.cli.talking_model import TalkingModel


@pytest.fixture
def conversation() -> Conversation:
    conversation = Conversation(TalkingModel(), {"max_tokens": 50})  # type: ignore[arg-type]  # a fake
    list(conversation.ask("hello there"))
    return conversation


def test_the_system_message_is_set_shown_and_removed(conversation: Conversation) -> None:
    assert "no system message" in obey("/system", conversation)
    obey("/system You are a pirate.", conversation)
    assert obey("/system", conversation) == conversation.system == "You are a pirate."
    obey("/system none", conversation)
    assert conversation.system is None


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("/set temperature 0.5", "temperature", 0.5),
        ("/set temperature=1", "temperature", 1.0),
        ("/set --top-k 40", "top_k", 40),
        ("/set seed 7", "seed", 7),
    ],
)
def test_options_are_set(conversation: Conversation, line: str, name: str, value: float) -> None:
    assert obey(line, conversation) == f"{name} {value}"
    assert conversation.sampling[name] == value
    assert f"{name} {value}" in obey("/set", conversation).splitlines()
    assert obey(f"/set {name} default", conversation) == f"{name} default"
    assert name not in conversation.sampling


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("/set temprature 1", "did you mean 'temperature'"),
        ("/set temperature hot", "not a value: 'temperature': got 'hot', expected a number"),
        ("/set top_k 1.5", "expected a whole number"),
        ("/set temperature -1", "out of range: 'temperature'"),
        ("/set top_p nan", "out of range: 'top_p'"),
        ("/hlep", "no such command: got /hlep; did you mean '/help'?"),
        ("/zzzz", "/help lists the commands; a space in front makes it a message"),
        ("/save", "where to?"),
    ],
)
def test_wrong_commands_say_what_would_be_right(conversation: Conversation, line: str, told: str) -> None:
    before = dict(conversation.sampling)
    with pytest.raises(BadInputError) as caught:
        obey(line, conversation)
    assert told in str(caught.value)
    assert conversation.sampling == before


def test_clear_forgets_the_messages(conversation: Conversation) -> None:
    obey("/clear", conversation)
    assert conversation.messages == []


def test_a_conversation_is_saved_as_markdown_and_json(conversation: Conversation, tmp_path: Path) -> None:
    conversation.system = "be brief"
    assert obey(f"/save {tmp_path / 'a b.md'}", conversation) == f"saved 3 messages in {tmp_path / 'a b.md'}"
    text = (tmp_path / "a b.md").read_text("utf-8")
    assert text == "## system\n\nbe brief\n\n## user\n\nhello there\n\n## assistant\n\nhello there\n"
    obey(f"/save {tmp_path / 'a.json'}", conversation)
    saved = json.loads((tmp_path / "a.json").read_text("utf-8"))
    assert saved["model"] == "talker"
    assert [message["role"] for message in saved["messages"]] == ["system", "user", "assistant"]


def test_saving_overwrites_only_what_this_conversation_wrote(conversation: Conversation, tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("mine")
    with pytest.raises(BadInputError, match="this file exists"):
        obey(f"/save {tmp_path / 'mine.md'}", conversation)
    for _ in range(2):
        obey(f"/save {tmp_path / 'new.md'}", conversation)
    assert (tmp_path / "mine.md").read_text() == "mine"


def test_help_names_every_command(conversation: Conversation) -> None:
    lines = obey("/help", conversation).splitlines()
    assert [line.split()[0] for line in lines[:-1]] == list(CHAT_COMMANDS)


@pytest.mark.parametrize("word", ["/exit", "/bye", "/quit"])
def test_leaving(conversation: Conversation, word: str) -> None:
    assert "tokens" in obey("/stats", conversation)
    with pytest.raises(LeaveChat):
        obey(word, conversation)
