"""The application's outermost layer: every request gets an identifier, is counted, and noted in the access log."""

from __future__ import annotations

import re
import time
import uuid
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, cast

from litestar import Litestar

from modelc.api.access_log import MAX_TEXT, Access, now

if TYPE_CHECKING:
    from litestar.types import HTTPScope, Message, Receive, Send

    from modelc.api.state import ServerState

METRICS_PATH = "/metrics"  # does not count itself as active
UNKNOWN = "unknown"  # endpoint of requests that have none
ID_HEADER = b"x-request-id"
_ID = re.compile(rb"[\w.:+/=@-]{1,128}", re.ASCII)

request_id: ContextVar[str] = ContextVar("request_id", default="-")  # of the request that is being answered


class Application(Litestar):
    """Litestar behind the outermost layer."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    async def _answer(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        server = cast("ServerState", self.state.server)
        headers = dict(scope["headers"])
        sent = headers.get(ID_HEADER, b"")
        identifier = sent.decode() if _ID.fullmatch(sent) else uuid.uuid4().hex
        request_id.set(identifier)
        came, start = now(), time.perf_counter()
        status = n_bytes = 0
        is_complete = False

        async def send_and_note(message: Message) -> None:
            nonlocal status, n_bytes, is_complete
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (ID_HEADER, identifier.encode())]
            await send(message)
            if message["type"] == "http.response.body":
                n_bytes += len(message.get("body", b""))
                is_complete = not message.get("more_body", False)

        is_counted = scope["path"] != METRICS_PATH
        server.metrics.active.inc(is_counted)
        try:
            await super().__call__(scope, receive, send_and_note)
        finally:
            server.metrics.active.dec(is_counted)
            endpoint = scope.get("path_template") or UNKNOWN
            server.metrics.requests.labels(endpoint, status).inc()
            if server.access_log is not None:
                server.access_log.note(
                    Access(
                        time=came,
                        id=identifier,
                        client=server.clients.address_of(scope),
                        method=scope["method"],
                        path=scope["path"][:MAX_TEXT],
                        status=status,
                        bytes=n_bytes,
                        duration_ms=round(1e3 * (time.perf_counter() - start), 3),
                        complete=is_complete,
                        agent=headers.get(b"user-agent", b"").decode("latin-1")[:MAX_TEXT],
                    )
                )
