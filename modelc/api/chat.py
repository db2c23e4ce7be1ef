"""modelc's own text endpoints: `/chat`, `/chat/stream` and `/complete`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Literal

import msgspec
from litestar import post
from litestar.types import ASGIApp
from msgspec import UNSET, UnsetType

from modelc.api.answers import EventStream, json_answer
from modelc.api.fields import SamplingFields
from modelc.api.generation import LiveAnswer, whole
from modelc.api.prompts import ChatFields, start_chat, start_prompts
from modelc.api.request import ApiRequest

if TYPE_CHECKING:
    from modelc.text import AnswerReader
    from modelc.text.answer_reader import Part


class CompleteFields(SamplingFields, kw_only=True):
    """A text to continue."""

    prompt: str


class ChatMessage(msgspec.Struct, kw_only=True):
    """What the model said, and what it wrote between `<think>` and `</think>` before."""

    role: Literal["assistant"] = "assistant"
    content: str
    reasoning_content: str | UnsetType = UNSET


class ChatAnswer(msgspec.Struct):
    """The assistant's next message."""

    message: ChatMessage


class ChatEvent(msgspec.Struct, kw_only=True):
    """One piece of the assistant's next message, or of the reasoning before it; the last has no text."""

    delta: str = ""
    reasoning_delta: str | UnsetType = UNSET
    done: bool = False


class CompleteAnswer(msgspec.Struct):
    """What follows the prompt."""

    completion: str


@post("/chat", status_code=200, opt={"body": ChatFields, "answer": ChatAnswer})
async def chat(request: ApiRequest) -> ASGIApp:
    """Continue a conversation.

    The header `x-modelc-seed` tells the seed used.
    """
    answer, (reader,) = await start_chat(request, await request.decode(ChatFields))
    (choice,) = await whole(request.receive, answer)
    parts = [*reader.push(choice.text), *reader.finish()]
    message = ChatMessage(content=_text_of(parts, "content"), reasoning_content=_text_of(parts, "reasoning") or UNSET)
    return json_answer(ChatAnswer(message), answer.headers)


@post("/chat/stream", status_code=200, opt={"body": ChatFields, "event": ChatEvent})
async def chat_stream(request: ApiRequest) -> ASGIApp:
    """Continue a conversation, a token at a time, as server-sent events."""
    answer, (reader,) = await start_chat(request, await request.decode(ChatFields))
    return EventStream(_events(answer, reader), answer)


@post("/complete", status_code=200, opt={"body": CompleteFields, "answer": CompleteAnswer})
async def complete(request: ApiRequest) -> ASGIApp:
    """Continue a text; special tokens written in it are recognised."""
    fields = await request.decode(CompleteFields)
    answer = await start_prompts(request, fields.prompt, fields)
    (choice,) = await whole(request.receive, answer)
    return json_answer(CompleteAnswer(choice.text), answer.headers)


def _text_of(parts: list[Part], kind: str) -> str:
    return "".join(part.text for part in parts if part.kind == kind)


async def _events(answer: LiveAnswer, reader: AnswerReader) -> AsyncIterator[object]:
    async for _, chunk in answer:
        parts = reader.push(chunk.text)
        if chunk.finish_reason is not None:
            parts += reader.finish()
        for part in parts:
            yield ChatEvent(delta=part.text) if part.kind == "content" else ChatEvent(reasoning_delta=part.text)
    yield ChatEvent(done=True)
