"""The messages of a conversation, as requests bring them and as chat templates take them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from modelc.errors import BadInputError, UnsupportedError

TEMPLATE_ROLES = {"developer": "system"}  # OpenAI's newer name, which models were not trained with


class ContentPart(msgspec.Struct):
    """One part of a message; only text is understood."""

    type: str
    text: str | None = None


class Message(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One message of a conversation."""

    role: Annotated[str, Meta(min_length=1, description="system, user, assistant, tool, or what the model knows")]
    content: str | list[ContentPart] | None = None
    name: str | None = None
    tool_calls: list[dict[str, Any]] | None = None


Messages = Annotated[list[Message], Meta(min_length=1, description="the conversation, oldest first")]


def template_messages(messages: list[Message]) -> list[dict[str, str]]:
    """Return the messages as a chat template takes them; text parts are joined by line breaks.

    Raises:
        BadInputError: A message without content.
        UnsupportedError: Content that is not text, or tool calls.
    """
    return [_template_message(message, f"messages[{i}]") for i, message in enumerate(messages)]


def _template_message(message: Message, where: str) -> dict[str, str]:
    if message.tool_calls:
        raise UnsupportedError("tool calls are not supported in this version", param=f"{where}.tool_calls")
    if message.content is None:
        raise BadInputError("a message has no content", param=f"{where}.content", expected="a string or a list")
    content = message.content if isinstance(message.content, str) else _joined(message.content, f"{where}.content")
    made = {"role": TEMPLATE_ROLES.get(message.role, message.role), "content": content}
    return made if message.name is None else {**made, "name": message.name}


def _joined(parts: list[ContentPart], where: str) -> str:
    texts = []
    for i, part in enumerate(parts):
        if part.type != "text":
            raise UnsupportedError("only text parts are supported", param=f"{where}[{i}].type", got=repr(part.type))
        if part.text is None:
            raise BadInputError("a text part has no text", param=f"{where}[{i}].text")
        texts.append(part.text)
    return "\n".join(texts)
