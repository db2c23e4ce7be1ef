"""Messages of a conversation, brought into the form that a chat template takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from modelc.errors import BadInputError

SYSTEM_ROLES = ("system", "developer")  # the second is OpenAI's newer name; templates that do not know it get the first


def join_parts(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Check `messages` and write each content as one text.

    Args:
        messages: Each with a `role`, and `content`: text, a list of parts of type text, or None.

    Returns:
        Copies with the same fields. Parts are joined with a line feed. Content is None only beside `tool_calls`.

    Raises:
        BadInputError: `param` names the field, as in `messages[1].content[0].type`.
    """
    if isinstance(messages, (str, Mapping)) or not isinstance(messages, Sequence):
        raise BadInputError("the conversation has the wrong type", param="messages", expected="a list of messages")
    if not messages:
        raise BadInputError("the conversation is empty", param="messages", expected="at least one message")
    return [_joined(message, f"messages[{at}]") for at, message in enumerate(messages)]


def with_system(messages: Sequence[Mapping[str, Any]], text: str) -> list[dict[str, Any]]:
    """Copies of `messages` in which the system says `text` as well: behind its own first words, a blank line between.

    Args:
        messages: With content as text.
        text: What the model is told.
    """
    copies = [dict(message) for message in messages]
    if copies and copies[0]["role"] in SYSTEM_ROLES:
        copies[0]["content"] = f"{copies[0]['content']}\n\n{text}"
        return copies
    return [{"role": "system", "content": text}, *copies]


def parts_of(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Copies of `messages` with each text as a list of one part, for templates that want nothing else."""
    return [
        {**message, "content": [{"type": "text", "text": message["content"]}]}
        if isinstance(message["content"], str)
        else dict(message)
        for message in messages
    ]


def merge_system(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Copies of `messages` with what the system says put before the user's next words, a blank line between.

    Where no such words come, they are the user's own, before a last message of the assistant.
    """
    merged: list[dict[str, Any]] = []
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "system":
            waiting.append(message["content"] or "")
        elif message["role"] == "user" and waiting:
            merged.append({**message, "content": "\n\n".join([*waiting, message["content"] or ""])})
            waiting = []
        else:
            merged.append(dict(message))
    if waiting:
        ends_with_answer = bool(merged) and merged[-1]["role"] == "assistant"
        merged.insert(len(merged) - ends_with_answer, {"role": "user", "content": "\n\n".join(waiting)})
    return merged


def _joined(message: Mapping[str, Any], where: str) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise BadInputError("a message has the wrong type", param=where, expected="an object with role and content")
    if not isinstance(message.get("role"), str):
        raise BadInputError("a message has no role", param=f"{where}.role", expected="system, user, assistant or tool")
    content = message.get("content")
    if content is None:
        content = None if message.get("tool_calls") else ""
    elif isinstance(content, list):
        content = "\n".join(_part_text(part, f"{where}.content[{at}]") for at, part in enumerate(content))
    elif not isinstance(content, str):
        raise BadInputError("a message's content has the wrong type", param=f"{where}.content", expected="text")
    return {**message, "content": content}


def _part_text(part: object, where: str) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        raise BadInputError("a content part has the wrong type", param=where, expected="an object of type text")
    if part.get("type") != "text":
        raise BadInputError(
            "this type of content is not supported", param=f"{where}.type", got=part.get("type"), expected="text"
        )
    if not isinstance(part.get("text"), str):
        raise BadInputError("a content part has no text", param=f"{where}.text", expected="text")
    return str(part["text"])
