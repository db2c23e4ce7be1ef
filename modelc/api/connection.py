"""A client's connection: uvicorn's, with a time limit for the heads of requests and errors in the API's own form."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

from modelc.api.problems import ErrorAnswer, Problem

CODES = {HTTPStatus.BAD_REQUEST: "bad_http", HTTPStatus.REQUEST_TIMEOUT: "request_timeout"}


class Connection(H11Protocol):
    """A connection whose next request's head must come in time, from its first byte on, or from the connection's.

    Attributes:
        head_timeout_s: That time.
    """

    head_timeout_s: float = 30.0
    _head_timer: asyncio.TimerHandle | None = None

    @property
    def is_half_sent(self) -> bool:
        """Whether a request has begun to come that is not complete."""
        return self.cycle is not None and self.cycle.more_body and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_clock()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came; the clock runs while it is a part of a head."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_clock()
        elif self._head_timer is None:
            self._await_head()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP."""
        self._refuse(HTTPStatus.BAD_REQUEST, "the request is not valid HTTP")

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self.head_timeout_s, self._give_up)

    def _stop_clock(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            what = f"the request's head did not come within {self.head_timeout_s:g} s"
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, what)

    def _refuse(self, status: HTTPStatus, what: str) -> None:
        body = msgspec.json.encode(ErrorAnswer(Problem(what, "invalid_request_error", None, CODES[status])))
        headers = [
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("connection", "close"),
        ]
        events: list[Any] = [
            h11.Response(status_code=status, headers=headers, reason=status.phrase),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ]
        try:
            for event in events:
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:  # in the middle of another answer
            pass
        self.transport.close()


def connection_of(head_timeout_s: float) -> type[Connection]:
    """The class of connections with this time limit; uvicorn makes them without arguments of ours."""
    return type("Connection", (Connection,), {"head_timeout_s": head_timeout_s})
