"""`POST /v1/chat/completions`: OpenAI's chat endpoint."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Literal

import msgspec
from litestar import post
from litestar.types import ASGIApp
from msgspec import UNSET, UnsetType

from modelc.api.answers import DONE, EventStream, json_answer
from modelc.api.generation import LiveAnswer, whole
from modelc.api.openai_shapes import (
    SYSTEM_FINGERPRINT,
    ChoiceCount,
    StreamOptions,
    Usage,
    n_choices,
    new_id,
    usage_of,
)
from modelc.api.prompts import ChatFields, start_chat
from modelc.api.request import ApiRequest


class ChatCompletionFields(ChatFields, kw_only=True):
    """A conversation to continue, and how to answer."""

    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: ChoiceCount | None = None
    user: str | None = None


class AnswerMessage(msgspec.Struct, kw_only=True):
    """What the model said."""

    role: Literal["assistant"] = "assistant"
    content: str


class MessageChoice(msgspec.Struct, kw_only=True):
    """One answer."""

    index: int
    message: AnswerMessage
    logprobs: None = None
    finish_reason: str


class ChatCompletion(msgspec.Struct, kw_only=True):
    """A whole answer; `seed` is the first choice's, the next ones have the next seeds."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    system_fingerprint: str = SYSTEM_FINGERPRINT
    seed: int
    choices: list[MessageChoice]
    usage: Usage


class Delta(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a chunk adds to the message."""

    role: Literal["assistant"] | None = None
    content: str | None = None


class ChunkChoice(msgspec.Struct, kw_only=True):
    """One answer's part of a chunk."""

    index: int
    delta: Delta
    logprobs: None = None
    finish_reason: str | None = None


class ChatCompletionChunk(msgspec.Struct, kw_only=True):
    """One event of a streamed answer."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    system_fingerprint: str = SYSTEM_FINGERPRINT
    seed: int
    choices: list[ChunkChoice]
    usage: Usage | UnsetType | None = UNSET  # null on all chunks but the last, where usage is asked for


@post(
    "/v1/chat/completions",
    status_code=200,
    opt={"body": ChatCompletionFields, "answer": ChatCompletion, "event": ChatCompletionChunk},
)
async def chat_completions(request: ApiRequest) -> ASGIApp:
    """Continue a conversation (OpenAI).

    With `stream`, server-sent events of chunks and then `[DONE]`. `model` may be any name: the loaded model answers.
    """
    fields = await request.decode(ChatCompletionFields)
    answer = await start_chat(request, fields, n_choices(fields.n))
    id_, created, name = new_id("chatcmpl"), int(time.time()), request.model.name
    if fields.stream:
        with_usage = bool(fields.stream_options and fields.stream_options.include_usage)
        blank = ChatCompletionChunk(
            id=id_, created=created, model=name, seed=answer.seed, choices=[], usage=None if with_usage else UNSET
        )
        return EventStream(_events(answer, blank, with_usage), answer)
    choices = await whole(request.receive, answer)
    completion = ChatCompletion(
        id=id_,
        created=created,
        model=name,
        seed=answer.seed,
        choices=[
            MessageChoice(index=i, message=AnswerMessage(content=choice.text), finish_reason=choice.finish_reason)
            for i, choice in enumerate(choices)
        ],
        usage=usage_of(answer),
    )
    return json_answer(completion, answer.headers)


async def _events(answer: LiveAnswer, blank: ChatCompletionChunk, with_usage: bool) -> AsyncIterator[object]:
    def event(index: int, delta: Delta, finish_reason: str | None = None) -> ChatCompletionChunk:
        choices = [ChunkChoice(index=index, delta=delta, finish_reason=finish_reason)]
        return msgspec.structs.replace(blank, choices=choices)

    for index in range(len(answer.generations)):
        yield event(index, Delta(role="assistant", content=""))
    async for index, chunk in answer:
        if chunk.text:
            yield event(index, Delta(content=chunk.text))
        if chunk.finish_reason is not None:
            yield event(index, Delta(), chunk.finish_reason)
    if with_usage:
        yield msgspec.structs.replace(blank, usage=usage_of(answer))
    yield DONE
