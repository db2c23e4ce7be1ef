"""`POST /lora/load` and `/lora/unload`: adapters swapped while the server runs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from litestar import post
from litestar.types import ASGIApp
from msgspec import UNSET, Meta, UnsetType

from modelc.api.answers import json_answer
from modelc.api.problems import Problem, error_answer
from modelc.api.request import ApiRequest
from modelc.errors import BadInputError, BusyError, ModelcError

if TYPE_CHECKING:
    from modelc.api.options import ServeOptions

MAX_ALPHA = 1e6


class LoraFields(msgspec.Struct, kw_only=True):
    """A LoRA adapter: a Safetensors or GGUF file, or a folder of PEFT."""

    path: Annotated[
        str, Meta(min_length=1, max_length=4096, description="below the folder of --adapters, if there is one")
    ]
    alpha: (
        Annotated[
            float, Meta(ge=-MAX_ALPHA, le=MAX_ALPHA, description="factor to the adapter's own scale, without it 1")
        ]
        | None
    ) = None


class LoraAnswer(msgspec.Struct, kw_only=True):
    """How many weights were adapted, and how many tensors of the file were skipped; both 0 where it failed."""

    applied: int = 0
    skipped: int = 0
    message: str
    error: Problem | UnsetType = UNSET


class UnloadAnswer(msgspec.Struct):
    """What was done."""

    message: str


@post("/lora/load", status_code=200, opt={"body": LoraFields, "answer": LoraAnswer, "400": LoraAnswer})
async def load_lora(request: ApiRequest) -> ASGIApp:
    """Use a LoRA adapter for all requests that come from now on, in place of the one in use.

    It is computed beside the weights; requests in flight end on the weights they began with.
    """
    try:
        fields = await request.decode(LoraFields)
        path = allowed_path(fields.path, request.server.options)
        alpha = 1.0 if fields.alpha is None else fields.alpha
        load = request.server.adapter_work.submit(request.loaded.load_lora, path, alpha)
        report = await asyncio.wrap_future(load)
    except BusyError:
        raise
    except ModelcError as error:
        problem = error_answer(error).error
        problem.type = "invalid_request_error"  # a file that cannot be used is the request's fault: it named it
        return json_answer(LoraAnswer(message=problem.message, error=problem), status=400)
    return json_answer(LoraAnswer(applied=report.applied, skipped=report.skipped, message=report.message))


@post("/lora/unload", status_code=200, opt={"answer": UnloadAnswer})
async def unload_lora(request: ApiRequest) -> ASGIApp:
    """Go back to the model's own weights for all requests that come from now on."""
    await asyncio.wrap_future(request.server.adapter_work.submit(request.loaded.unload_lora))
    return json_answer(UnloadAnswer("LoRA unloaded; base model restored"))


def allowed_path(text: str, options: ServeOptions) -> Path:
    """Return the file that a request names, if a request may name it.

    Args:
        text: As sent; relative paths count from the folder of adapters, where there is one.
        options: With that folder. Without it every path may be named, but only on a loopback address.

    Raises:
        BadInputError: It may not; nothing is told about what is there.
    """
    folder = options.adapters
    if folder is None and options.is_local:
        return Path(text)
    if folder is None:
        hint = "start it with --adapters DIR"
        raise BadInputError("this server loads no adapters on request", param="path", hint=hint)
    try:
        root = folder.resolve()
        path = (root / text).resolve()
        is_inside = path.is_relative_to(root)
    except (OSError, RuntimeError, ValueError):  # a loop of links, a name that no file can have
        is_inside = False
    if not is_inside:
        raise BadInputError("outside the folder of adapters", param="path", expected="a path below it")
    return path
