"""A conversation whose last message stays open: the model goes on with it instead of beginning one of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from modelc.errors import BadInputError

END = "\ufdd2"  # stands behind what was said so far while a template writes the prompt; texts do not have it


def is_continued(
    messages: Sequence[Mapping[str, Any]],
    continue_final_message: bool | None = None,
    add_generation_prompt: bool | None = None,
) -> bool:
    """Whether the answer goes on with the last message: as asked, else where it is the assistant's own.

    Args:
        messages: A conversation.
        continue_final_message: What was asked; None for nothing.
        add_generation_prompt: Whether a new message was asked for; None for nothing.

    Raises:
        BadInputError: Both were asked for.
    """
    if continue_final_message and add_generation_prompt:
        hint = "leave one of them out"
        raise BadInputError("a message is continued, or a new one begins", param="continue_final_message", hint=hint)
    if continue_final_message is not None:
        return continue_final_message
    return not add_generation_prompt and bool(messages) and messages[-1].get("role") == "assistant"


def refuse_closed(message: Mapping[str, Any], where: str = "messages[-1]") -> None:
    """Refuse a message that nothing can be added to.

    Args:
        message: The last of a conversation, as it was given.
        where: Its name in errors.

    Raises:
        BadInputError: It calls tools, or has several parts.
    """
    hint = "set continue_final_message to false for a new message"
    if message.get("tool_calls"):
        what = "a message that calls tools cannot be continued"
        raise BadInputError(what, param=f"{where}.tool_calls", hint=f"add the results, or {hint}")
    content = message.get("content")
    if isinstance(content, list) and len(content) > 1:
        raise BadInputError(
            "a message of several parts cannot be continued",
            param=f"{where}.content",
            got=f"{len(content)} parts",
            expected="a string, or one part",
            hint=hint,
        )


def opened(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Copies of `messages` with `END` behind the last one's text: its content, or its reasoning where there is no more.

    Args:
        messages: With content as text.
    """
    *before, last = map(dict, messages)
    key = open_field(last)
    return [*before, {**last, key: (last.get(key) or "").replace(END, "") + END}]


def open_field(message: Mapping[str, Any]) -> str:
    """The field that a continued message goes on in."""
    return "content" if message.get("content") or not message.get("reasoning_content") else "reasoning_content"


def cut(prompt: str) -> str:
    """A prompt up to `END`.

    Raises:
        BadInputError: The template left the message out, or took its end apart.
    """
    said, found, _ = prompt.rpartition(END)
    if not found:
        hint = "set continue_final_message to false for a new message"
        raise BadInputError("the chat template leaves no last message to continue", param="messages", hint=hint)
    return said
