"""`POST /v1/chat/completions`: OpenAI's chat endpoint."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from litestar import post
from litestar.types import ASGIApp
from msgspec import UNSET

from modelc.api.answers import DONE, EventStream, json_answer
from modelc.api.chat_answer import ChatCompletion, ChatCompletionChunk, ChoiceWriter, ChunkChoice, Delta
from modelc.api.generation import LiveAnswer, whole
from modelc.api.logprobs import clamped
from modelc.api.openai_shapes import ChoiceCount, StreamOptions, TopLogprobs, n_choices, new_id, usage_of
from modelc.api.prompts import ChatFields, start_chat
from modelc.api.request import ApiRequest
from modelc.api.tools import ToolChoice, Tools, offer_of
from modelc.errors import UnsupportedError


class ChatCompletionFields(ChatFields, kw_only=True):
    """A conversation to continue, and how to answer."""

    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: ChoiceCount | None = None
    logprobs: bool | None = None
    top_logprobs: TopLogprobs | None = None
    tools: Tools | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    functions: list[Any] | None = None
    function_call: str | dict[str, Any] | None = None
    user: str | None = None


@post(
    "/v1/chat/completions",
    status_code=200,
    opt={"body": ChatCompletionFields, "answer": ChatCompletion, "event": ChatCompletionChunk},
)
async def chat_completions(request: ApiRequest) -> ASGIApp:
    """Continue a conversation (OpenAI).

    With `stream`, server-sent events of chunks and then `[DONE]`. `model` may be any name: the loaded model answers.
    It goes on with a last message of role `assistant`, unless `continue_final_message` is false; the answer is what
    follows. What a model writes between `<think>` and `</think>` at the beginning is its `reasoning_content`. Calls of
    `tools` are read in the form that the model's family writes; `tool_choice` `required`, or one that names a function,
    makes the model write calls that match the function's schema.
    """
    fields = await request.decode(ChatCompletionFields)
    _refuse_functions(fields)
    offer = offer_of(fields.tools, fields.tool_choice, fields.parallel_tool_calls)
    n_top = clamped(fields.top_logprobs or 0) if fields.logprobs else 0
    answer, readers = await start_chat(
        request, fields, n_choices(fields.n), offer, logprobs=bool(fields.logprobs), top_logprobs=n_top
    )
    id_, created, name = new_id("chatcmpl-"), int(time.time()), request.model.name
    tokenizer = request.model.tokenizer
    writers = [ChoiceWriter(i, tokenizer, reader, bool(fields.logprobs)) for i, reader in enumerate(readers)]
    if fields.stream:
        with_usage = bool(fields.stream_options and fields.stream_options.include_usage)
        blank = ChatCompletionChunk(
            id=id_, created=created, model=name, seed=answer.seed, choices=[], usage=None if with_usage else UNSET
        )
        return EventStream(_events(answer, writers, blank, with_usage), answer)
    choices = await whole(request.receive, answer)
    completion = ChatCompletion(
        id=id_,
        created=created,
        model=name,
        seed=answer.seed,
        choices=[writer.whole(choice) for writer, choice in zip(writers, choices, strict=True)],
        usage=usage_of(answer),
    )
    return json_answer(completion, answer.headers)


def _refuse_functions(fields: ChatCompletionFields) -> None:
    if fields.functions:
        raise UnsupportedError("functions are not supported", param="functions", hint="offer them as tools")
    if fields.function_call not in (None, "none", "auto"):
        raise UnsupportedError("function_call is not supported", param="function_call", hint="use tool_choice")


async def _events(
    answer: LiveAnswer, writers: list[ChoiceWriter], blank: ChatCompletionChunk, with_usage: bool
) -> AsyncIterator[object]:
    for writer in writers:
        first = ChunkChoice(index=writer.index, delta=Delta(role="assistant", content=""))
        yield msgspec.structs.replace(blank, choices=[first])
    async for index, chunk in answer:
        for choice in writers[index].pieces(chunk):
            yield msgspec.structs.replace(blank, choices=[choice])
    if with_usage:
        yield msgspec.structs.replace(blank, usage=usage_of(answer))
    yield DONE
