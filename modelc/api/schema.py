"""`GET /schema`: the API as an OpenAPI document, made from the structs that requests and answers are."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
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
FAILURE = {"$ref": "#/components/responses/Failure"}
UNDESCRIBED_METHODS = {"HEAD", "OPTIONS"}
# Statuses beside 200, and what they mean; of them the first three on every path that has limits.
LIMITS = {
    401: "The API key is missing or wrong",
    429: "Too many requests from this client; `retry-after` tells when to come again",
    503: "The model is loading, or as many requests as allowed are being answered",
}
BODY_FAILURES = {
    400: "A field is wrong; `param` names it",
    408: "The body did not come in time",
    413: "The body is too large",
}
HEADERS = {"x-request-id": {"description": "The request's identifier", "schema": {"type": "string"}}}


@get("/schema", opt={"media": "application/json"})
async def schema(request: ApiRequest) -> ASGIApp:
    """Describe every endpoint (this document)."""
    handlers = [
        (route.path_format, handler)
        for route in request.app.routes
        if isinstance(route, HTTPRoute)
        for handler in route.route_handlers
    ]
    return json_answer(openapi_document(handlers, bool(request.server.options.api_keys)))


def openapi_document(handlers: list[tuple[str, HTTPRouteHandler]], needs_key: bool) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of handlers with their paths.

    A handler's `opt` names the struct of its request `body`, of its `answer`, of each `event` of a stream, and of
    answers with other statuses (`"503"`); or the `media` type of an answer that is no struct. Its docstring is summary
    and description. `needs_key`: clients must send a key.
    """
    shapes = [ErrorAnswer, *(shape for _, handler in handlers for shape in _shapes(handler))]
    shapes = list(dict.fromkeys(shapes))
    references, components = msgspec.json.schema_components(shapes, ref_template=REFERENCE)
    schema_of = dict(zip(shapes, references, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for path, handler in sorted(handlers, key=lambda pair: pair[0]):
        for method in handler.http_methods - UNDESCRIBED_METHODS:
            paths.setdefault(path, {})[method.lower()] = _operation(path, handler, schema_of, needs_key)
    failure = _response("What went wrong", {"application/json": {"schema": schema_of[ErrorAnswer]}})
    return {
        "openapi": "3.1.0",
        "info": {"title": "modelc", "version": __version__, "description": "Local inference with the same bits."},
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": {"Failure": failure},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
    }


def _shapes(handler: HTTPRouteHandler) -> list[Any]:
    return [shape for key, shape in handler.opt.items() if key in ("body", "answer", "event") or key.isdigit()]


def _event_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A server-sent event, whose data are JSON text of that schema, or `[DONE]`."""
    text = {"type": "string", "contentMediaType": "application/json", "contentSchema": schema}
    end = {"type": "string", "const": "[DONE]"}
    return {"type": "object", "properties": {"data": {"anyOf": [text, end]}}, "required": ["data"]}


def _response(description: str, content: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": description, "headers": HEADERS, "content": content}


def _operation(
    path: str, handler: HTTPRouteHandler, schema_of: Mapping[Any, dict[str, Any]], needs_key: bool
) -> dict[str, Any]:
    summary, _, description = (handler.fn.__doc__ or "").strip().partition("\n")
    content: dict[str, Any] = {}
    if "answer" in handler.opt:
        content["application/json"] = {"schema": schema_of[handler.opt["answer"]]}
    if "event" in handler.opt:
        content["text/event-stream"] = {"schema": _event_of(schema_of[handler.opt["event"]])}
    if "media" in handler.opt:
        media_type = handler.opt["media"]
        content[media_type] = {"schema": {"type": "object" if media_type == "application/json" else "string"}}
    responses: dict[str, Any] = {"200": _response("Success", content)}
    is_free = path in FREE_PATHS
    described = {**({} if is_free else LIMITS), **(BODY_FAILURES if "body" in handler.opt else {})}
    for status, meaning in sorted(described.items()):
        responses[str(status)] = {**FAILURE, "description": meaning}
    for key, shape in handler.opt.items():
        if key.isdigit():
            meaning = described.get(int(key), HTTPStatus(int(key)).phrase)
            responses[key] = _response(meaning, {"application/json": {"schema": schema_of[shape]}})
    operation: dict[str, Any] = {
        "operationId": handler.fn.__name__ + ("_v1" if path.startswith("/v1/") else ""),
        "summary": summary,
        "description": " ".join(description.split()),
        "responses": {**responses, "default": FAILURE},
        "security": [{"bearer": []}, {"key": []}] if needs_key and not is_free else [],
    }
    if "body" in handler.opt:
        body = {"application/json": {"schema": schema_of[handler.opt["body"]]}}
        operation["requestBody"] = {"required": True, "content": body}
    if "{" in path:
        name = path[path.index("{") + 1 : path.index("}")]
        operation["parameters"] = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}}]
    return operation
