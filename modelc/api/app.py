"""The application: every endpoint, what stands before them, and how errors leave them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litestar.config.cors import CORSConfig
from litestar.datastructures import State

from modelc.api import (
    about,
    chat,
    chat_completions,
    completions,
    embeddings,
    infer,
    lora,
    models,
    page,
    schema,
    system,
    tokens,
)
from modelc.api.front import Application
from modelc.api.gate import Gate
from modelc.api.problems import answer_error
from modelc.api.request import ApiRequest

if TYPE_CHECKING:
    from modelc.api.state import ServerState

EXPOSED_HEADERS = ["x-modelc-seed", "x-modelc-fallback", "x-request-id", "retry-after"]  # to pages of other origins
ENDPOINTS = [
    page.page,
    about.health,
    about.info,
    about.props,
    about.version,
    system.system,
    about.metrics,
    models.list_models,
    models.show_model,
    chat_completions.chat_completions,
    completions.completions,
    chat.chat,
    chat.chat_stream,
    chat.complete,
    embeddings.embeddings,
    embeddings.openai_embeddings,
    infer.infer,
    tokens.tokenize,
    tokens.detokenize,
    tokens.tokenizer_info,
    lora.load_lora,
    lora.unload_lora,
    schema.schema,
]


def create_app(server: ServerState) -> Application:
    """Return the ASGI application of one server.

    Args:
        server: Options and the model, which may come later (`server.loaded_model`); until then endpoints that need
            it answer 503.
    """
    origins = list(server.options.cors_origins)
    return Application(
        route_handlers=ENDPOINTS,
        request_class=ApiRequest,
        middleware=[Gate(server).before],
        exception_handlers={Exception: answer_error},
        request_max_body_size=server.options.max_body_bytes,
        cors_config=CORSConfig(allow_origins=origins, expose_headers=EXPOSED_HEADERS) if origins else None,
        openapi_config=None,  # ours is made from the structs, and only when it is asked for
        logging_config=None,
        state=State({"server": server}),
    )
