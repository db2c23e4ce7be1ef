"""`POST /v1/completions`: OpenAI's endpoint for plain text."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Literal

import msgspec
from litestar import post
from litestar.types import ASGIApp
from msgspec import UNSET, UnsetType

from modelc.api.answers import DONE, EventStream, json_answer
from modelc.api.fields import SamplingFields
from modelc.api.generation import LiveGeneration, texts_of
from modelc.api.openai_shapes import SYSTEM_FINGERPRINT, StreamOptions, Usage, new_id, usage_of
from modelc.api.prompts import Prompt, start_prompts
from modelc.api.request import ApiRequest


class CompletionFields(SamplingFields, kw_only=True):
    """Prompts to continue, and how to answer."""

    prompt: Prompt
    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: str | None = None


class TextChoice(msgspec.Struct, kw_only=True):
    """The continuation of one prompt, or a piece of it."""

    index: int
    text: str
    logprobs: None = None
    finish_reason: str | None = None


class Completion(msgspec.Struct, kw_only=True):
    """A whole answer, or one event of a streamed one; `seed` is the one used."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    system_fingerprint: str = SYSTEM_FINGERPRINT
    seed: int
    choices: list[TextChoice]
    usage: Usage | UnsetType | None = UNSET  # streamed: only where asked for, null on all chunks but the last


@post(
    "/v1/completions",
    status_code=200,
    opt={"body": CompletionFields, "answer": Completion, "event": Completion},
)
async def completions(request: ApiRequest) -> ASGIApp:
    """Continue one or several texts (OpenAI).

    `prompt` is a string, a list of strings, token ids, or a list of lists of them; special tokens written in a string
    are recognised. Choices come prompt by prompt, and `usage` sums them.
    """
    fields = await request.decode(CompletionFields)
    generations = await start_prompts(request, fields.prompt, fields)
    headers = generations[0].headers
    blank = Completion(
        id=new_id("cmpl"), created=int(time.time()), model=request.model.name, seed=generations[0].seed, choices=[]
    )
    if fields.stream:
        with_usage = bool(fields.stream_options and fields.stream_options.include_usage)
        blank.usage = None if with_usage else UNSET
        return EventStream(_events(generations, blank, with_usage), generations, headers)
    texts = await texts_of(request.receive, generations)
    blank.choices = [
        TextChoice(index=i, text=text, finish_reason=generation.finish_reason)
        for i, (text, generation) in enumerate(zip(texts, generations, strict=True))
    ]
    blank.usage = usage_of(generations)
    return json_answer(blank, headers)


async def _events(generations: list[LiveGeneration], blank: Completion, with_usage: bool) -> AsyncIterator[object]:
    def chunk(index: int, text: str, finish_reason: str | None = None) -> Completion:
        choices = [TextChoice(index=index, text=text, finish_reason=finish_reason)]
        return msgspec.structs.replace(blank, choices=choices)

    for i, generation in enumerate(generations):
        async for piece in generation:
            yield chunk(i, piece)
        yield chunk(i, "", generation.finish_reason)
    if with_usage:
        yield msgspec.structs.replace(blank, usage=usage_of(generations))
    yield DONE
