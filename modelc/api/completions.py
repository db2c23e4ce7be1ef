"""`POST /v1/completions`: OpenAI's endpoint for plain text."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator
from typing import Annotated, Literal

import msgspec
from litestar import post
from litestar.types import ASGIApp
from msgspec import UNSET, Meta, UnsetType

from modelc.api.answers import DONE, EventStream, json_answer
from modelc.api.fields import SamplingFields
from modelc.api.generation import Choice, LiveAnswer, whole
from modelc.api.openai_shapes import (
    SYSTEM_FINGERPRINT,
    ChoiceCount,
    StreamOptions,
    Usage,
    n_choices,
    new_id,
    usage_of,
)
from modelc.api.prompts import Prompt, start_prompts
from modelc.api.request import ApiRequest
from modelc.errors import BadInputError


class CompletionFields(SamplingFields, kw_only=True):
    """Prompts to continue, and how to answer."""

    prompt: Prompt
    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: ChoiceCount | None = None
    best_of: Annotated[int, Meta(description="of so many the likeliest `n` are returned; not with stream")] | None = (
        None
    )
    user: str | None = None


class TextChoice(msgspec.Struct, kw_only=True):
    """The continuation of one prompt, or a piece of it."""

    index: int
    text: str
    logprobs: None = None
    finish_reason: str | None = None


class Completion(msgspec.Struct, kw_only=True):
    """A whole answer, or one event of a streamed one; `seed` is each prompt's first, further choices have the next."""

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
    are recognised. Choices come prompt by prompt, and `usage` sums them. With `best_of` above `n`, the choices of each
    prompt are those whose tokens have the highest mean log-probability, the best first.
    """
    fields = await request.decode(CompletionFields)
    n = n_choices(fields.n)
    best_of = n if fields.best_of is None else n_choices(fields.best_of)
    if best_of < n:
        raise BadInputError("best_of is smaller than n", param="best_of", got=best_of, expected=f"at least {n}")
    if fields.stream and best_of > n:
        raise BadInputError("best_of cannot be streamed", param="best_of", hint="leave out one of best_of and stream")
    answer = await start_prompts(request, fields.prompt, fields, best_of, logprobs=best_of > n)
    blank = Completion(
        id=new_id("cmpl"), created=int(time.time()), model=request.model.name, seed=answer.seed, choices=[]
    )
    if fields.stream:
        with_usage = bool(fields.stream_options and fields.stream_options.include_usage)
        blank.usage = None if with_usage else UNSET
        return EventStream(_events(answer, blank, with_usage), answer)
    choices = await whole(request.receive, answer)
    if best_of > n:
        choices = [choice for i in range(0, len(choices), best_of) for choice in likeliest(choices[i : i + best_of], n)]
    blank.choices = [
        TextChoice(index=i, text=choice.text, finish_reason=choice.finish_reason) for i, choice in enumerate(choices)
    ]
    blank.usage = usage_of(answer)
    return json_answer(blank, answer.headers)


def likeliest(choices: list[Choice], n: int) -> list[Choice]:
    """Return the n choices with the highest mean log-probability of their tokens, the highest first."""

    def mean(choice: Choice) -> float:
        value = math.fsum(choice.logprobs) / max(len(choice.logprobs), 1)
        return -math.inf if math.isnan(value) else value

    return sorted(choices, key=mean, reverse=True)[:n]  # of equals the first


async def _events(answer: LiveAnswer, blank: Completion, with_usage: bool) -> AsyncIterator[object]:
    def event(index: int, text: str, finish_reason: str | None = None) -> Completion:
        choices = [TextChoice(index=index, text=text, finish_reason=finish_reason)]
        return msgspec.structs.replace(blank, choices=choices)

    async for index, chunk in answer:
        if chunk.text:
            yield event(index, chunk.text)
        if chunk.finish_reason is not None:
            yield event(index, "", chunk.finish_reason)
    if with_usage:
        yield msgspec.structs.replace(blank, usage=usage_of(answer))
    yield DONE
