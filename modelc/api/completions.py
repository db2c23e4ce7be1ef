"""`POST /v1/completions`: OpenAI's endpoint for plain text."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import msgspec
from litestar import post
from litestar.types import ASGIApp
from msgspec import UNSET, Meta, UnsetType

from modelc.api.answers import DONE, EventStream, json_answer
from modelc.api.fields import SamplingFields
from modelc.api.generation import Choice, LiveAnswer, whole
from modelc.api.logprobs import (
    CompletionLogprobs,
    ContentLogprobs,
    TextLogprobs,
    TextLogprobsWriter,
    clamped,
    content_logprobs,
    joined,
)
from modelc.api.off_loop import tokenizing
from modelc.api.openai_shapes import (
    SYSTEM_FINGERPRINT,
    ChoiceCount,
    StreamOptions,
    TopLogprobs,
    Usage,
    n_choices,
    new_id,
    usage_of,
)
from modelc.api.prompts import Prompt, prompt_texts, start_prompts
from modelc.api.request import ApiRequest
from modelc.errors import BadInputError

if TYPE_CHECKING:
    from modelc.runtime import Chunk
    from modelc.text import Tokenizer

T = TypeVar("T")


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
    logprobs: (
        Annotated[
            int | bool, Meta(description="a number: so many likeliest tokens beside each, 0 to 20; true: as chats")
        ]
        | None
    ) = None
    top_logprobs: TopLogprobs | None = None
    echo: Annotated[bool, Meta(description="the choice's text begins with the prompt")] | None = None
    suffix: Annotated[str, Meta(description="put behind the completion")] | None = None
    user: str | None = None


class TextChoice(msgspec.Struct, kw_only=True):
    """The continuation of one prompt, or a piece of it."""

    index: int
    text: str
    logprobs: CompletionLogprobs | None = None
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
    prompt are those whose tokens have the highest mean log-probability, the best first. With `echo` and `logprobs`,
    the prompt's tokens have log-probabilities too; with `max_tokens` 0 there is nothing else.
    """
    fields = await request.decode(CompletionFields)
    n = n_choices(fields.n)
    best_of = n if fields.best_of is None else n_choices(fields.best_of)
    if best_of < n:
        raise BadInputError("best_of is smaller than n", param="best_of", got=best_of, expected=f"at least {n}")
    if fields.stream and best_of > n:
        raise BadInputError("best_of cannot be streamed", param="best_of", hint="leave out one of best_of and stream")
    has_logprobs, n_top = _logprobs_wanted(fields)
    answer = await start_prompts(
        request,
        fields.prompt,
        fields,
        best_of,
        logprobs=has_logprobs or best_of > n,
        top_logprobs=n_top,
        prompt_logprobs=has_logprobs and bool(fields.echo),
    )
    blank = Completion(
        id=new_id("cmpl-"), created=int(time.time()), model=request.model.name, seed=answer.seed, choices=[]
    )
    tokenizer = request.model.tokenizer
    texts = await tokenizing(request, lambda: prompt_texts(request.model, fields.prompt)) if fields.echo else None
    writers = [
        _ChoiceWriter(fields, tokenizer, ids, None if texts is None else texts[i])
        for i, ids in enumerate(answer.prompt_ids)
        for _ in range(best_of)
    ]
    if fields.stream:
        with_usage = bool(fields.stream_options and fields.stream_options.include_usage)
        blank.usage = None if with_usage else UNSET
        return EventStream(_events(answer, writers, blank, with_usage), answer)
    choices = list(zip(await whole(request.receive, answer), writers, strict=True))
    if best_of > n:
        choices = [pair for i in range(0, len(choices), best_of) for pair in likeliest(choices[i : i + best_of], n)]
    blank.choices = [writer.whole(i, choice) for i, (choice, writer) in enumerate(choices)]
    blank.usage = usage_of(answer)
    return json_answer(blank, answer.headers)


def likeliest(choices: list[tuple[Choice, T]], n: int) -> list[tuple[Choice, T]]:
    """Return the n choices with the highest mean log-probability of their tokens, the highest first."""

    def mean(pair: tuple[Choice, T]) -> float:
        logprobs = [known.logprob for known in pair[0].logprobs]
        value = math.fsum(logprobs) / max(len(logprobs), 1)
        return -math.inf if math.isnan(value) else value

    return sorted(choices, key=mean, reverse=True)[:n]  # of equals the first


def _logprobs_wanted(fields: CompletionFields) -> tuple[bool, int]:
    """Whether log-probabilities are wanted, and of how many tokens beside each."""
    if isinstance(fields.logprobs, bool) or fields.logprobs is None:
        return bool(fields.logprobs), clamped(fields.top_logprobs or 0) if fields.logprobs else 0
    return True, clamped(fields.logprobs)


class _ChoiceWriter:
    """Puts one choice together: the prompt where it is echoed, what is generated, the suffix.

    Args:
        fields: What was asked.
        tokenizer: The model's.
        prompt_ids: Tokens of the choice's prompt.
        prompt: Its text, None where it is not echoed.
    """

    def __init__(
        self, fields: CompletionFields, tokenizer: Tokenizer, prompt_ids: Sequence[int], prompt: str | None
    ) -> None:
        has_logprobs, n_top = _logprobs_wanted(fields)
        self._has_logprobs = has_logprobs
        self._text_form = None if isinstance(fields.logprobs, bool) else TextLogprobsWriter(tokenizer, n_top)
        self._suffix = fields.suffix or ""
        self._tokenizer = tokenizer
        self._prompt_ids = prompt_ids
        self._prompt = prompt

    def pieces(self, part: Chunk | Choice) -> Iterator[tuple[str, TextLogprobs | ContentLogprobs | None]]:
        """Yield texts with their log-probabilities; the first part must be the generation's first."""
        if self._prompt is not None:
            yield self._prompt, self._of_prompt(part, self._prompt) if self._has_logprobs else None
            self._prompt = None
        if part.text or (self._has_logprobs and part.logprobs):
            yield part.text, self._of_answer(part) if self._has_logprobs else None
        if part.finish_reason is not None and self._suffix:
            yield self._suffix, None

    def whole(self, index: int, choice: Choice) -> TextChoice:
        """Return a choice that has ended."""
        pieces = list(self.pieces(choice))
        logprobs = None
        if self._has_logprobs and self._text_form is not None:
            known = [part for _, part in pieces if isinstance(part, TextLogprobs)]
            logprobs = CompletionLogprobs.of(joined([*known, self._text_form.answer([])]))
        elif self._has_logprobs:
            content = [each for _, part in pieces if isinstance(part, ContentLogprobs) for each in part.content]
            logprobs = CompletionLogprobs(content=content, refusal=None)
        text = "".join(text for text, _ in pieces)
        return TextChoice(index=index, text=text, logprobs=logprobs, finish_reason=choice.finish_reason)

    def _of_prompt(self, part: Chunk | Choice, text: str) -> TextLogprobs | ContentLogprobs:
        if self._text_form is not None:
            return self._text_form.prompt(self._prompt_ids, part.prompt_logprobs, text)
        return content_logprobs(self._tokenizer, part.prompt_logprobs, first=self._prompt_ids[0])

    def _of_answer(self, part: Chunk | Choice) -> TextLogprobs | ContentLogprobs:
        if self._text_form is not None:
            return self._text_form.answer(part.logprobs)
        return content_logprobs(self._tokenizer, part.logprobs)


async def _events(
    answer: LiveAnswer, writers: list[_ChoiceWriter], blank: Completion, with_usage: bool
) -> AsyncIterator[object]:
    def event(choice: TextChoice) -> Completion:
        return msgspec.structs.replace(blank, choices=[choice])

    async for index, chunk in answer:
        for text, known in writers[index].pieces(chunk):
            logprobs = None if known is None else CompletionLogprobs.of(known)
            yield event(TextChoice(index=index, text=text, logprobs=logprobs))
        if chunk.finish_reason is not None:
            yield event(TextChoice(index=index, text="", finish_reason=chunk.finish_reason))
    if with_usage:
        yield msgspec.structs.replace(blank, usage=usage_of(answer))
    yield DONE
