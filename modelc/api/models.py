"""`GET /v1/models`: OpenAI's list of models, here of the one that is loaded."""

from __future__ import annotations

from typing import Literal

import msgspec
from litestar import get
from litestar.types import ASGIApp
from msgspec import UNSET, UnsetType

from modelc.api.answers import json_answer
from modelc.api.problems import ModelNotFoundError
from modelc.api.request import ApiRequest
from modelc.errors import did_you_mean


class ModelCard(msgspec.Struct, kw_only=True):
    """A model; `max_model_len` is its context in tokens, where it has one."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "modelc"
    max_model_len: int | UnsetType = UNSET


class ModelList(msgspec.Struct, kw_only=True):
    """All models."""

    object: Literal["list"] = "list"
    data: list[ModelCard]


@get("/v1/models", opt={"answer": ModelList})
async def list_models(request: ApiRequest) -> ASGIApp:
    """List the models (OpenAI)."""
    return json_answer(ModelList(data=[_card(request)]))


@get("/v1/models/{model_id:path}", opt={"answer": ModelCard})
async def show_model(request: ApiRequest) -> ASGIApp:
    """Show one model (OpenAI); its name may contain slashes."""
    card = _card(request)
    asked = str(request.path_params["model_id"]).removeprefix("/")
    if asked != card.id:
        raise ModelNotFoundError(
            f"the model {asked!r} does not exist", param="model", hint=did_you_mean(asked, [card.id])
        )
    return json_answer(card)


def _card(request: ApiRequest) -> ModelCard:
    model = request.loaded
    return ModelCard(
        id=model.name, created=request.server.started_s, max_model_len=UNSET if model.n_ctx is None else model.n_ctx
    )
