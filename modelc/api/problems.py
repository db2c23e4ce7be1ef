"""Errors as HTTP answers: one table from error classes to statuses, one body for all of them."""

import logging
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import msgspec
from litestar import Request
from litestar.exceptions import HTTPException
from litestar.response import Response

from modelc.api.front import request_id
from modelc.errors import BadInputError, BusyError, ModelcError, NotFoundError, UnsupportedError, did_you_mean

logger = logging.getLogger(__name__)


class UnauthorizedError(ModelcError):
    """The API key is missing or wrong: send the right one."""


class ModelNotFoundError(NotFoundError):
    """The model asked about is not the one loaded."""


class ContextLengthError(BadInputError):
    """The prompt has more tokens than the model's context."""


class SlowBodyError(ModelcError):
    """The request's body stopped coming; its connection is closed."""


class ClientGoneError(ModelcError):
    """The client went away, or stopped reading; nobody sees this but the log and the metrics."""


class RateLimitError(BusyError):
    """The client sent more requests than it may; `retry_after_s` says when the next one is taken."""

    def __init__(self, what: str, *, retry_after_s: int, hint: str | None = None) -> None:
        super().__init__(what, hint=hint)
        self.retry_after_s = retry_after_s


class Problem(msgspec.Struct):
    """What went wrong."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorAnswer(msgspec.Struct):
    """The body of every answer that is not a success."""

    error: Problem


@dataclass(frozen=True, slots=True)
class Kind:
    """How one class of errors is answered."""

    status: int
    type: str
    code: str | None = None


KINDS: dict[type[Exception], Kind] = {
    UnauthorizedError: Kind(401, "invalid_request_error", "invalid_api_key"),
    ModelNotFoundError: Kind(404, "invalid_request_error", "model_not_found"),
    NotFoundError: Kind(404, "invalid_request_error", "not_found"),
    ContextLengthError: Kind(400, "invalid_request_error", "context_length_exceeded"),
    BadInputError: Kind(400, "invalid_request_error"),
    UnsupportedError: Kind(400, "invalid_request_error", "unsupported"),
    RateLimitError: Kind(429, "rate_limit_error", "rate_limit_exceeded"),
    SlowBodyError: Kind(408, "invalid_request_error", "request_timeout"),
    ClientGoneError: Kind(499, "invalid_request_error", "client_gone"),
    BusyError: Kind(503, "server_error", "busy"),
    Exception: Kind(500, "server_error"),
}
STATUS_CODES = {404: "not_found", 405: "method_not_allowed", 413: "body_too_large"}
RETRY_AFTER_S = 1
MAX_PATH = 200  # characters of a path in a message


def kind_of(error: Exception) -> Kind:
    """Return how `error` is answered: by its nearest class in the table."""
    if isinstance(error, HTTPException):
        is_client = error.status_code < 500
        type_ = "invalid_request_error" if is_client else "server_error"
        return Kind(error.status_code, type_, STATUS_CODES.get(error.status_code))
    return next(KINDS[cls] for cls in type(error).__mro__ if cls in KINDS)


def error_answer(error: Exception) -> ErrorAnswer:
    """Return the body for an error; of one that nobody foresaw only that it happened."""
    kind = kind_of(error)
    match error:
        case ModelcError():
            return ErrorAnswer(Problem(str(error), kind.type, error.param, kind.code))
        case HTTPException():
            return ErrorAnswer(Problem(error.detail, kind.type, None, kind.code))
        case _:
            return ErrorAnswer(Problem("internal error; the server's log has the details", kind.type, None, kind.code))


def log_unforeseen(error: Exception) -> None:
    """Log the traceback of an error that is a fault of the server itself."""
    if not isinstance(error, ModelcError | HTTPException):
        logger.error("unforeseen error in request %s", request_id.get(), exc_info=error)


def answer_error(request: Request[Any, Any, Any], error: Exception) -> Response[ErrorAnswer]:
    """Answer an exception that left a handler or the router (the application's exception handler)."""
    log_unforeseen(error)
    status = kind_of(error).status
    answer = error_answer(error)
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    path = request.scope["path"][:MAX_PATH]
    match status:
        case HTTPStatus.NOT_FOUND if isinstance(error, HTTPException):
            hint = did_you_mean(path, {route.path for route in request.app.routes})
            answer.error.message = f"no endpoint {path!r}" + (f"; {hint}" if hint else "")
        case HTTPStatus.METHOD_NOT_ALLOWED:
            allowed = headers.get("allow", "")
            answer.error.message = f"{request.method} is not allowed on {path!r}; use {allowed}"
        case HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            limit = request.app.state.server.options.max_body_bytes
            answer.error.message = f"the request body is larger than {limit} bytes"
        case HTTPStatus.REQUEST_TIMEOUT:
            headers["connection"] = "close"
        case HTTPStatus.UNAUTHORIZED:
            headers["www-authenticate"] = "Bearer"
        case HTTPStatus.TOO_MANY_REQUESTS | HTTPStatus.SERVICE_UNAVAILABLE:
            headers["retry-after"] = str(getattr(error, "retry_after_s", RETRY_AFTER_S))
    return Response(answer, status_code=status, headers=headers, media_type="application/json")
