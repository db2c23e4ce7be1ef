"""What stands before every endpoint: key, rate, number of requests at once, and the time that a body may take."""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING, cast

from modelc.api.clients import bucket_of
from modelc.api.front import METRICS_PATH
from modelc.api.keys import KeyRing
from modelc.api.problems import RateLimitError, SlowBodyError, UnauthorizedError
from modelc.api.rates import RateLimiter
from modelc.errors import BusyError

if TYPE_CHECKING:
    from litestar.types import ASGIApp, HTTPReceiveMessage, Receive, Scope, Send

    from modelc.api.state import ServerState

FREE_PATHS = frozenset({"/", "/health", "/info", "/props", METRICS_PATH})  # no key, no limits
WHOLE_BODY_PARTS = 10  # a body may take so many times as long as the wait for its next part


class Gate:
    """Lets requests through or refuses them.

    Args:
        server: Options, and who clients are.
    """

    def __init__(self, server: ServerState) -> None:
        options = server.options
        self._keys = KeyRing(options.api_keys) if options.api_keys else None
        self._limiter = None if options.rate_limit is None else RateLimiter(options.rate_limit)
        self._max_active = math.inf if options.max_concurrent is None else options.max_concurrent
        self._n_active = 0  # whose body is there, without those on FREE_PATHS
        self._body_bytes = 0  # of all requests
        self._body_memory_bytes = options.body_memory_bytes
        self._body_timeout_s = options.body_timeout_s
        self._clients = server.clients

    def before(self, app: ASGIApp) -> ASGIApp:
        """Return `app` with this gate in front of it (a middleware factory)."""

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            is_limited = scope["path_template"] not in FREE_PATHS
            is_complete = is_active = False
            body_bytes = 0
            end_s = time.monotonic() + WHOLE_BODY_PARTS * self._body_timeout_s

            async def receive_in_time() -> HTTPReceiveMessage:
                nonlocal is_complete, is_active, body_bytes
                if is_complete:
                    return cast("HTTPReceiveMessage", await receive())
                try:
                    wait_s = min(self._body_timeout_s, end_s - time.monotonic())
                    message = cast("HTTPReceiveMessage", await asyncio.wait_for(receive(), wait_s))
                except TimeoutError:
                    what = f"the request body did not come within {self._body_timeout_s:g} s"
                    raise SlowBodyError(what) from None
                part_bytes = len(cast("bytes", message.get("body", b"")))
                body_bytes += part_bytes
                self._body_bytes += part_bytes
                if body_bytes < self._body_bytes > self._body_memory_bytes:  # one alone always has room
                    raise BusyError("the memory for request bodies is used up", hint="try again later")
                is_complete = message["type"] == "http.request" and not message.get("more_body", False)
                if is_complete and is_limited:  # a body that is slow takes no place from others
                    self._check_active()
                    self._n_active += 1
                    is_active = True
                return message

            if is_limited:
                self._admit(scope)
            try:
                await app(scope, receive_in_time, send)
            finally:
                self._n_active -= is_active
                self._body_bytes -= body_bytes

        return guarded

    def _admit(self, scope: Scope) -> None:
        if self._keys is not None and not self._keys.opens(scope["headers"]):
            raise UnauthorizedError("the API key is missing or wrong", hint="send 'Authorization: Bearer <key>'")
        if self._limiter is not None:
            client = bucket_of(self._clients.address_of(scope))
            wait_s = self._limiter.wait_s(client, time.monotonic())
            if wait_s > 0:
                limit = f"at most {self._limiter.per_minute} requests a minute are taken"
                seconds = math.ceil(wait_s)
                raise RateLimitError(limit, retry_after_s=seconds, hint=f"try again in {seconds} s")
        self._check_active()

    def _check_active(self) -> None:
        if self._n_active >= self._max_active:
            raise BusyError(f"{self._n_active} requests are being answered, no more at once", hint="try again later")
