"""What the server says of itself: `/health`, `/info`, `/props`, `/api/version`, `/metrics`."""

from __future__ import annotations

import asyncio

import msgspec
from litestar import HttpMethod, get, route
from litestar.response.base import ASGIResponse
from litestar.types import ASGIApp
from msgspec import UNSET, UnsetType

from modelc.api.answers import json_answer
from modelc.api.fields import SamplingFields, sampling_of
from modelc.api.metrics import CONTENT_TYPE
from modelc.api.problems import RETRY_AFTER_S
from modelc.api.request import ApiRequest
from modelc.version import __version__, git_sha


class Health(msgspec.Struct):
    """`ok`, or `loading` (with status 503) until the model is there."""

    status: str
    model: str | UnsetType = UNSET
    architecture: str | UnsetType = UNSET


class Info(msgspec.Struct):
    """The model; `tensors` are names."""

    name: str
    architecture: str
    total_params: int
    total_bytes: int
    tensors: list[str]


class DefaultGeneration(msgspec.Struct):
    """Sampling where a request does not say."""

    max_tokens: int
    temperature: float
    top_p: float
    min_p: float
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    gamma: int


class Props(msgspec.Struct):
    """The model and the server's defaults."""

    model: str
    architecture: str
    total_params: int
    total_bytes: int
    chat_template: str | None
    default_generation: DefaultGeneration


class Version(msgspec.Struct):
    """The program."""

    version: str
    git_sha: str


@route("/health", http_method=[HttpMethod.GET, HttpMethod.HEAD], opt={"answer": Health, "503": Health})
async def health(request: ApiRequest) -> ASGIApp:
    """Tell whether requests are answered."""
    model = request.server.loaded_model
    if model is None:
        return json_answer(Health("loading"), {"retry-after": str(RETRY_AFTER_S)}, status=503)
    return json_answer(Health("ok", model.name, model.architecture))


@get("/info", opt={"answer": Info})
async def info(request: ApiRequest) -> ASGIApp:
    """Describe the model and list its tensors."""
    model = request.loaded
    return json_answer(
        Info(model.name, model.architecture, model.total_params, model.total_bytes, list(model.tensor_names))
    )


@get("/props", opt={"answer": Props})
async def props(request: ApiRequest) -> ASGIApp:
    """Show the chat template and the defaults of generation."""
    model = request.loaded
    sampling = sampling_of(SamplingFields(), request.server.options.defaults, model.vocab_size)
    defaults = DefaultGeneration(
        max_tokens=sampling.max_tokens,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        min_p=sampling.min_p,
        repetition_penalty=sampling.repetition_penalty,
        presence_penalty=sampling.presence_penalty,
        frequency_penalty=sampling.frequency_penalty,
        gamma=model.gamma,
    )
    answer = Props(model.name, model.architecture, model.total_params, model.total_bytes, model.chat_template, defaults)
    return json_answer(answer)


@get("/api/version", opt={"answer": Version})
async def version(request: ApiRequest) -> ASGIApp:
    """Tell the program's version."""
    return json_answer(Version(__version__, await asyncio.to_thread(git_sha)))


@get("/metrics", opt={"media": "text/plain"})
async def metrics(request: ApiRequest) -> ASGIApp:
    """Give figures in Prometheus's text format."""
    return ASGIResponse(body=request.server.metrics.render(), headers={"content-type": CONTENT_TYPE})
