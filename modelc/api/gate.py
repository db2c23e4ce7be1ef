"""What stands before every endpoint: the key, the rate, the number of requests at once, and the counting of them."""

from __future__ import annotations

import asyncio
import hmac
import math
import time
from collections import deque
from collections.abc import Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, cast

from modelc.api.problems import RateLimitError, SlowBodyError, UnauthorizedError, kind_of
from modelc.errors import BusyError

if TYPE_CHECKING:
    from litestar.types import ASGIApp, HTTPReceiveMessage, Message, Receive, Scope, Send

    from modelc.api.state import ServerState

METRICS_PATH = "/metrics"  # does not count itself as active
FREE_PATHS = frozenset({"/", "/health", "/info", "/props", METRICS_PATH})  # no key, no limits
KEY_HEADERS = frozenset({b"authorization", b"x-api-key"})
WINDOW_S = 60.0
MAX_CLIENTS = 4096  # addresses remembered before the idle ones are dropped


class Gate:
    """Lets requests through or refuses them, and counts both.

    Args:
        server: Options and figures.
    """

    def __init__(self, server: ServerState) -> None:
        options = server.options
        self._key = None if options.api_key is None else options.api_key.encode()
        self._limiter = None if options.rate_limit is None else RateLimiter(options.rate_limit)
        self._max_active = math.inf if options.max_concurrent is None else options.max_concurrent
        self._n_active = 0  # whose body is there, without those on FREE_PATHS
        self._body_timeout_s = options.body_timeout_s
        self._metrics = server.metrics

    def before(self, app: ASGIApp) -> ASGIApp:
        """Return `app` with this gate in front of it (a middleware factory)."""

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            endpoint = scope["path_template"]
            status = HTTPStatus.INTERNAL_SERVER_ERROR.value

            async def send_noting_status(message: Message) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
                await send(message)

            is_limited = endpoint not in FREE_PATHS
            is_complete = is_active = False

            async def receive_in_time() -> HTTPReceiveMessage:
                nonlocal is_complete, is_active
                if is_complete:
                    return cast("HTTPReceiveMessage", await receive())
                try:
                    message = cast("HTTPReceiveMessage", await asyncio.wait_for(receive(), self._body_timeout_s))
                except TimeoutError:
                    what = f"the request body stopped coming for {self._body_timeout_s:g} s"
                    raise SlowBodyError(what) from None
                is_complete = message["type"] == "http.request" and not message["more_body"]
                if is_complete and is_limited:  # a body that is slow takes no place from others
                    self._check_active()
                    self._n_active += 1
                    is_active = True
                return message

            try:
                if is_limited:
                    self._admit(scope)
                self._metrics.active.inc(endpoint != METRICS_PATH)
                try:
                    await app(scope, receive_in_time, send_noting_status)
                finally:
                    self._n_active -= is_active
                    self._metrics.active.dec(endpoint != METRICS_PATH)
            except Exception as error:
                status = kind_of(error).status
                raise
            finally:
                self._metrics.requests.labels(endpoint, status).inc()

        return guarded

    def _admit(self, scope: Scope) -> None:
        if self._key is not None and not _has_key(scope["headers"], self._key):
            raise UnauthorizedError("the API key is missing or wrong", hint="send 'Authorization: Bearer <key>'")
        if self._limiter is not None:
            client = scope["client"]
            wait_s = self._limiter.wait_s(client[0] if client else "", time.monotonic())
            if wait_s > 0:
                limit = f"at most {self._limiter.per_minute} requests a minute are taken"
                seconds = math.ceil(wait_s)
                raise RateLimitError(limit, retry_after_s=seconds, hint=f"try again in {seconds} s")
        self._check_active()

    def _check_active(self) -> None:
        if self._n_active >= self._max_active:
            raise BusyError(f"{self._n_active} requests are being answered, no more at once", hint="try again later")


class RateLimiter:
    """At most `per_minute` requests (one or more) of one client in any 60 seconds."""

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self._times: dict[str, deque[float]] = {}

    def wait_s(self, client: str, now_s: float) -> float:
        """Admit a request and return 0, or return the seconds until the next one is admitted."""
        if len(self._times) > MAX_CLIENTS:
            self._times = {who: times for who, times in self._times.items() if times[-1] > now_s - WINDOW_S}
        times = self._times.setdefault(client, deque())
        while times and times[0] <= now_s - WINDOW_S:
            times.popleft()
        if len(times) >= self.per_minute:
            return times[0] + WINDOW_S - now_s
        times.append(now_s)
        return 0.0


def _has_key(headers: Iterable[tuple[bytes, bytes]], key: bytes) -> bool:
    for name, value in headers:
        scheme, _, token = value.partition(b" ")
        sent = token.strip() if name == b"authorization" and scheme.lower() == b"bearer" else value
        if name in KEY_HEADERS and hmac.compare_digest(sent, key):
            return True
    return False
