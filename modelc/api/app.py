"""The application: every endpoint, what stands before them, and how errors leave them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litestar import Litestar
from litestar.config.cors import CORSConfig
from litestar.datastructures import State

from modelc.api import about, chat, chat_completions, completions, models, page, schema, tokens
from modelc.api.gate import Gate
from modelc.api.problems import answer_error
from modelc.api.request import ApiRequest

if TYPE_CHECKING:
    from modelc.api.state import ServerState

ENDPOINTS = [
    page.page,
    about.health,
    about.info,
    about.props,
    about.version,
    about.metrics,
    models.list_models,
    models.show_model,
    chat_completions.chat_completions,
    completions.completions,
    chat.chat,
    chat.chat_stream,
    chat.complete,
    tokens.tokenize,
    tokens.detokenize,
    schema.schema,
]


def create_app(server: ServerState) -> Litestar:
    """Return the ASGI application of one server.

    Args:
        server: Options and the model, which may come later (`server.loaded_model`); until then endpoints that need
            it answer 503.
    """
    origins = list(server.options.cors_origins)
    return Litestar(
        route_handlers=ENDPOINTS,
        request_class=ApiRequest,
        middleware=[Gate(server).before],
        exception_handlers={Exception: answer_error},
        request_max_body_size=server.options.max_body_bytes,
        cors_config=CORSConfig(allow_origins=origins, expose_headers=["x-modelc-seed"]) if origins else None,
        openapi_config=None,  # ours is made from the structs, and only when it is asked for
        logging_config=None,
        state=State({"server": server}),
    )
