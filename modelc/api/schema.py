"""`GET /schema`: the API as an OpenAPI document, made from the structs that requests and answers are."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import get
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute
from litestar.types import ASGIApp

from modelc.api.answers import json_answer
from modelc.api.gate import FREE_PATHS
from modelc.api.problems import ErrorAnswer
from modelc.api.request import ApiRequest
from modelc.version import __version__

REFERENCE = "#/components/schemas/{name}"
UNDESCRIBED_METHODS = {"HEAD", "OPTIONS"}
MEDIA_TYPES = {"answer": "application/json", "event": "text/event-stream"}


@get("/schema")
async def schema(request: ApiRequest) -> ASGIApp:
    """Describe every endpoint (this document)."""
    handlers = [
        (route.path_format, handler)
        for route in request.app.routes
        if isinstance(route, HTTPRoute)
        for handler in route.route_handlers
    ]
    return json_answer(openapi_document(handlers))


def openapi_document(handlers: list[tuple[str, HTTPRouteHandler]]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of handlers with their paths.

    A handler's `opt` names the struct of its request `body`, of its `answer`, and of each `event` of a stream; its
    docstring is summary and description.
    """
    shapes = list(dict.fromkeys([ErrorAnswer, *(shape for _, handler in handlers for shape in handler.opt.values())]))
    references, components = msgspec.json.schema_components(shapes, ref_template=REFERENCE)
    schema_of = dict(zip(shapes, references, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for path, handler in sorted(handlers, key=lambda pair: pair[0]):
        for method in handler.http_methods - UNDESCRIBED_METHODS:
            paths.setdefault(path, {})[method.lower()] = _operation(path, handler, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {"title": "modelc", "version": __version__, "description": "Local inference with the same bits."},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(path: str, handler: HTTPRouteHandler, schema_of: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    summary, _, description = (handler.fn.__doc__ or "").strip().partition("\n")
    content = {
        media_type: {"schema": schema_of[handler.opt[kind]]}
        for kind, media_type in MEDIA_TYPES.items()
        if kind in handler.opt
    }
    failure = {"description": "Error", "content": {"application/json": {"schema": schema_of[ErrorAnswer]}}}
    operation: dict[str, Any] = {
        "operationId": handler.fn.__name__ + ("_v1" if path.startswith("/v1/") else ""),
        "summary": summary,
        "description": " ".join(description.split()),
        "responses": {"200": {"description": "Success", "content": content}, "default": failure},
        "security": [] if path in FREE_PATHS else [{"key": []}],
    }
    if "body" in handler.opt:
        body = {"application/json": {"schema": schema_of[handler.opt["body"]]}}
        operation["requestBody"] = {"required": True, "content": body}
    if "{" in path:
        name = path[path.index("{") + 1 : path.index("}")]
        operation["parameters"] = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}}]
    return operation
