"""`POST /embeddings` and OpenAI's `POST /v1/embeddings`: texts to vectors."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar, cast

import msgspec
import numpy as np
from litestar import post
from litestar.types import ASGIApp
from msgspec import UNSET, Meta, UnsetType

from modelc.api.answers import json_answer
from modelc.api.generation import when_gone
from modelc.api.off_loop import computing, tokenizing
from modelc.api.problems import ClientGoneError, ContextLengthError
from modelc.api.request import ApiRequest
from modelc.errors import BadFileError, BadInputError

if TYPE_CHECKING:
    from modelc.runtime import LoadedModel
    from modelc.runtime.loaded import F32

T = TypeVar("T")
MAX_TEXTS = 2048
TEXTS_AT_ONCE = 64  # between two looks at whether the client is still there
Text = str | list[int]


class EmbeddingsFields(msgspec.Struct, kw_only=True):
    """One text, or several; a text is a string or a list of token ids."""

    input: Text | None = None
    inputs: Annotated[list[Text], Meta(min_length=1, max_length=MAX_TEXTS)] | None = None


class IndexedEmbedding(msgspec.Struct):
    """The vector of one text of several."""

    embedding: list[float]
    index: int


class EmbeddingsAnswer(msgspec.Struct, kw_only=True):
    """The vector of `input`, or the vectors of `inputs`."""

    embedding: list[float] | UnsetType = UNSET
    embeddings: list[IndexedEmbedding] | UnsetType = UNSET
    model: str


class OpenAiEmbeddingsFields(msgspec.Struct, kw_only=True):
    """What to embed, and in which form the vectors are wanted."""

    input: Annotated[str, Meta(min_length=1)] | Annotated[list[str | int | list[int]], Meta(min_length=1)]
    model: str | None = None
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: (
        Annotated[int, Meta(ge=1, description="so many first numbers of each vector, scaled to length 1")] | None
    ) = None
    user: str | None = None


class OpenAiEmbedding(msgspec.Struct, kw_only=True):
    """One vector: numbers, or float32 numbers, the lowest byte first, in base64."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class EmbeddingsUsage(msgspec.Struct):
    """Tokens read."""

    prompt_tokens: int
    total_tokens: int


class OpenAiEmbeddings(msgspec.Struct, kw_only=True):
    """The vectors, in the order of the texts."""

    object: Literal["list"] = "list"
    data: list[OpenAiEmbedding]
    model: str
    usage: EmbeddingsUsage


@post("/embeddings", status_code=200, opt={"body": EmbeddingsFields, "answer": EmbeddingsAnswer})
async def embeddings(request: ApiRequest) -> ASGIApp:
    """Turn texts into vectors.

    Decoders give the hidden state of the last token after the final norm, encoders pool and scale as their files say.
    """
    fields = await request.decode(EmbeddingsFields)
    if fields.input is None and fields.inputs is None:
        raise BadInputError("a field is missing", param="input", expected="a text, or a list of texts in 'inputs'")
    texts = {"input": fields.input} if fields.input is not None else _named("inputs", fields.inputs or [])
    vectors, _ = await _embed(request, texts)
    name = request.loaded.name
    if fields.input is not None:
        return json_answer(EmbeddingsAnswer(embedding=vectors[0].tolist(), model=name), request.fallback_headers)

    def answer() -> ASGIApp:
        found = [_written(IndexedEmbedding(vector.tolist(), i)) for i, vector in enumerate(vectors)]
        return json_answer(EmbeddingsAnswer(embeddings=found, model=name), request.fallback_headers)

    return await computing(request, answer)


@post("/v1/embeddings", status_code=200, opt={"body": OpenAiEmbeddingsFields, "answer": OpenAiEmbeddings})
async def openai_embeddings(request: ApiRequest) -> ASGIApp:
    """Turn texts into vectors (OpenAI). `model` may be any name: the loaded model answers."""
    fields = await request.decode(OpenAiEmbeddingsFields)
    vectors, n_tokens = await _embed(request, _texts(fields.input))

    def answer() -> ASGIApp:
        in_base64 = fields.encoding_format == "base64"
        data = []
        for i, whole in enumerate(vectors):
            vector = whole if fields.dimensions is None else _shortened(whole, fields.dimensions)
            embedding = _in_base64(vector) if in_base64 else vector.tolist()
            data.append(_written(OpenAiEmbedding(index=i, embedding=embedding)))
        usage = EmbeddingsUsage(n_tokens, n_tokens)
        body = OpenAiEmbeddings(data=data, model=request.loaded.name, usage=usage)
        return json_answer(body, request.fallback_headers)

    return await computing(request, answer)


async def _embed(request: ApiRequest, texts: dict[str, Text]) -> tuple[list[F32], int]:
    """The vector of each text, named by the field that it came from, and the number of tokens of all.

    Raises:
        BadInputError: A text without tokens, or with unknown ones.
        ContextLengthError: A text that is too long.
        ClientGoneError: The client went away.
    """
    model = request.loaded
    model.require("embed")
    tokens = await tokenizing(request, lambda: [_tokens(model, text, param) for param, text in texts.items()])
    gone = asyncio.Event()
    watcher = asyncio.create_task(when_gone(request.receive, gone.set))
    vectors: list[F32] = []
    start_s = time.perf_counter()
    try:
        for i in range(0, len(tokens), TEXTS_AT_ONCE):
            if gone.is_set():
                raise ClientGoneError("the client went away")
            batch = tokens[i : i + TEXTS_AT_ONCE]
            vectors.extend(await computing(request, partial(model.embed, batch)))
    finally:
        watcher.cancel()
    request.server.metrics.durations.observe(time.perf_counter() - start_s)
    if not all(np.isfinite(vector).all() for vector in vectors):
        raise BadFileError("the embeddings are not finite numbers", hint="the model's weights are damaged")
    return vectors, sum(map(len, tokens))


def _tokens(model: LoadedModel, text: Text, param: str) -> list[int]:
    limit = model.n_ctx or 0
    least = model.tokenizer.least_tokens(text) if isinstance(text, str) else len(text)
    tokens = text if isinstance(text, list) else [] if least > limit else model.tokenize(text)
    if max(least, len(tokens)) > limit:
        got = f"{len(tokens) or f'at least {least}'} tokens"
        raise ContextLengthError("the text is too long", param=param, got=got, expected=f"at most {limit} tokens")
    if not tokens:
        raise BadInputError("the text has no tokens", param=param)
    if not 0 <= min(tokens) <= max(tokens) < model.vocab_size:
        raise BadInputError("no such token", param=param, expected=f"0 to {model.vocab_size - 1}")
    return tokens


def _texts(given: str | list[str | int | list[int]]) -> dict[str, Text]:
    if isinstance(given, str):
        return {"input": given}
    ids = [item for item in given if isinstance(item, int)]
    if len(ids) == len(given):
        return {"input": ids}
    if ids:
        raise BadInputError("not a text", param="input", expected="a string, token ids, or a list of either")
    texts = [item for item in given if not isinstance(item, int)]
    if len(texts) > MAX_TEXTS:
        raise BadInputError("too many texts", param="input", got=len(texts), expected=f"at most {MAX_TEXTS}")
    return _named("input", texts)


def _named(field: str, texts: Sequence[Text]) -> dict[str, Text]:
    return {f"{field}[{i}]": text for i, text in enumerate(texts)}


def _shortened(vector: F32, dimensions: int) -> F32:
    """The first `dimensions` numbers of a vector, scaled to length 1."""
    from modelc.runtime.pooling import normalized  # late: the engine takes long to import, and here it is loaded

    if dimensions > len(vector):
        raise BadInputError(
            "too many dimensions", param="dimensions", got=dimensions, expected=f"at most {len(vector)}"
        )
    shortened: F32 = normalized(vector[None, :dimensions])[0]
    return shortened


def _written(item: T) -> T:
    """An item of an answer as its JSON text: written one by one, many of them leave other threads their turns."""
    return cast("T", msgspec.Raw(msgspec.json.encode(item)))


def _in_base64(vector: F32) -> str:
    return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()
