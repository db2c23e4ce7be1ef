"""The messages of a conversation, as requests bring them and as chat templates take them."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from modelc.errors import BadInputError, UnsupportedError
from modelc.text import is_continued, refuse_closed


class ContentPart(msgspec.Struct):
    """One part of a message; only text is understood."""

    type: str
    text: str | None = None


class FunctionCall(msgspec.Struct):
    """A function and the JSON text of its arguments."""

    name: str
    arguments: str


class ToolCall(msgspec.Struct, kw_only=True):
    """A call that the model made; the message with its result has the same id as `tool_call_id`."""

    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


class Message(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One message of a conversation."""

    role: Annotated[str, Meta(min_length=1, description="system, user, assistant, tool, or what the model knows")]
    content: str | list[ContentPart] | None = None
    name: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None


Messages = Annotated[list[Message], Meta(min_length=1, description="the conversation, oldest first")]


def template_messages(messages: list[Message]) -> list[dict[str, Any]]:
    """Return the messages as a chat template takes them; text parts are joined by line breaks.

    Arguments of calls are objects, as most templates want them, or the text that was given where it is no object.

    Raises:
        BadInputError: A message without content.
        UnsupportedError: Content that is not text.
    """
    return [_template_message(message, f"messages[{i}]") for i, message in enumerate(messages)]


def continues(messages: list[Message], continue_final_message: bool | None, add_generation_prompt: bool | None) -> bool:
    """Whether the answer goes on with the last message: as asked, else where that is the assistant's.

    Raises:
        BadInputError: It cannot be continued, or a new message is asked for as well.
    """
    last = {"role": messages[-1].role, "content": messages[-1].content, "tool_calls": messages[-1].tool_calls}
    if not is_continued([last], continue_final_message, add_generation_prompt):
        return False
    refuse_closed(last, f"messages[{len(messages) - 1}]")
    return True


def arguments_as_text(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return template messages with the arguments of their calls as JSON text, for templates that want that."""
    return [
        {**message, "tool_calls": [_with_text(call) for call in message["tool_calls"]]}
        if "tool_calls" in message
        else message
        for message in messages
    ]


def with_short_ids(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return template messages whose calls have ids of nine letters and digits, as Mistral's templates demand."""

    def short(id_: str) -> str:
        return "".join(char for char in id_ if char.isascii() and char.isalnum())[-9:].rjust(9, "0")

    made = []
    for message in messages:
        changed = dict(message)
        if "tool_calls" in message:
            changed["tool_calls"] = [{**call, "id": short(call["id"])} for call in message["tool_calls"]]
        if "tool_call_id" in message:
            changed["tool_call_id"] = short(message["tool_call_id"])
        made.append(changed)
    return made


def _with_text(call: dict[str, Any]) -> dict[str, Any]:
    arguments = call["function"]["arguments"]
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {**call, "function": {**call["function"], "arguments": text}}


def _template_message(message: Message, where: str) -> dict[str, Any]:
    if message.content is None and not message.tool_calls and not message.reasoning_content:
        raise BadInputError("a message has no content", param=f"{where}.content", expected="a string or a list")
    content = _joined(message.content, f"{where}.content") if isinstance(message.content, list) else message.content
    made: dict[str, Any] = {"role": message.role, "content": content}
    if message.tool_calls:
        made["tool_calls"] = [_template_call(call) for call in message.tool_calls]
    for key in ("name", "tool_call_id", "reasoning_content"):
        if (value := getattr(message, key)) is not None:
            made[key] = value
    return made


def _template_call(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = json.loads(call.function.arguments)
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        arguments = call.function.arguments
    return {"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": arguments}}


def _joined(parts: list[ContentPart], where: str) -> str:
    texts = []
    for i, part in enumerate(parts):
        if part.type != "text":
            raise UnsupportedError("only text parts are supported", param=f"{where}[{i}].type", got=repr(part.type))
        if part.text is None:
            raise BadInputError("a text part has no text", param=f"{where}[{i}].text")
        texts.append(part.text)
    return "\n".join(texts)
