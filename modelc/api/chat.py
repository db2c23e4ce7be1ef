"""modelc's own text endpoints: `/chat`, `/chat/stream` and `/complete`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal

import msgspec
from litestar import post
from litestar.types import ASGIApp

from modelc.api.answers import EventStream, json_answer
from modelc.api.fields import SamplingFields
from modelc.api.generation import LiveAnswer, whole
from modelc.api.prompts import ChatFields, start_chat, start_prompts
from modelc.api.request import ApiRequest


class CompleteFields(SamplingFields, kw_only=True):
    """A text to continue."""

    prompt: str


class ChatMessage(msgspec.Struct, kw_only=True):
    """What the model said."""

    role: Literal["assistant"] = "assistant"
    content: str


class ChatAnswer(msgspec.Struct):
    """The assistant's next message."""

    message: ChatMessage


class ChatEvent(msgspec.Struct):
    """One piece of the assistant's next message; the last has no text."""

    delta: str
    done: bool


class CompleteAnswer(msgspec.Struct):
    """What follows the prompt."""

    completion: str


@post("/chat", status_code=200, opt={"body": ChatFields, "answer": ChatAnswer})
async def chat(request: ApiRequest) -> ASGIApp:
    """Continue a conversation.

    The header `x-modelc-seed` tells the seed used.
    """
    answer = await start_chat(request, await request.decode(ChatFields))
    (choice,) = await whole(request.receive, answer)
    return json_answer(ChatAnswer(ChatMessage(content=choice.text)), answer.headers)


@post("/chat/stream", status_code=200, opt={"body": ChatFields, "event": ChatEvent})
async def chat_stream(request: ApiRequest) -> ASGIApp:
    """Continue a conversation, a token at a time, as server-sent events."""
    answer = await start_chat(request, await request.decode(ChatFields))
    return EventStream(_events(answer), answer)


@post("/complete", status_code=200, opt={"body": CompleteFields, "answer": CompleteAnswer})
async def complete(request: ApiRequest) -> ASGIApp:
    """Continue a text; special tokens written in it are recognised."""
    fields = await request.decode(CompleteFields)
    answer = await start_prompts(request, fields.prompt, fields)
    (choice,) = await whole(request.receive, answer)
    return json_answer(CompleteAnswer(choice.text), answer.headers)


async def _events(answer: LiveAnswer) -> AsyncIterator[object]:
    async for _, chunk in answer:
        if chunk.text:
            yield ChatEvent(chunk.text, done=False)
    yield ChatEvent("", done=True)
