"""The two kinds of answer: one JSON body, and a stream of server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

import msgspec
from litestar.response.base import ASGIResponse

from modelc.api.generation import LiveAnswer, cancelled_with_client
from modelc.api.problems import error_answer, log_unforeseen

if TYPE_CHECKING:
    from litestar.types import Receive, Scope, Send

DONE = b"[DONE]"  # how OpenAI's streams end
STREAM_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # else nginx holds events back
]


def json_answer(body: object, headers: Mapping[str, str] | None = None, status: int = 200) -> ASGIResponse:
    """Answer with a struct as JSON."""
    encoded = msgspec.json.encode(body)
    return ASGIResponse(body=encoded, headers=dict(headers or {}), media_type="application/json", status_code=status)


class EventStream:
    """An ASGI application that sends events as they come and stops the generations when the client leaves.

    Args:
        events: Structs or dicts, sent as JSON, or bytes, sent as they are. An error among them is sent as an event
            with the usual error body, and ends the stream.
        answer: What the events are made from.
    """

    def __init__(self, events: AsyncIterator[object], answer: LiveAnswer) -> None:
        self.events = events
        self.answer = answer
        self.headers = [(name.encode(), value.encode()) for name, value in answer.headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the whole stream."""
        await send({"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS + self.headers})
        async with cancelled_with_client(receive, self.answer):
            try:
                async for event in self.events:
                    await _send_event(send, event)
            except Exception as error:
                log_unforeseen(error)
                await _send_event(send, error_answer(error))
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send_event(send: Send, event: object) -> None:
    data = event if isinstance(event, bytes) else msgspec.json.encode(event)
    await send({"type": "http.response.body", "body": b"data: " + data + b"\n\n", "more_body": True})
