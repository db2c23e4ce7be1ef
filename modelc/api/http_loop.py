"""uvicorn, set up for this API and ended by an event instead of by its own signal handlers."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from uvicorn.config import Config
from uvicorn.server import Server

from modelc.api.app import create_app
from modelc.api.connection import Connection, connection_of

if TYPE_CHECKING:
    from modelc.api.state import ServerState

KEEP_ALIVE_S = 75  # longer than clients and proxies keep idle connections, so that it is they who close them


def run_until(stop: threading.Event, server: ServerState, listener: socket.socket) -> None:
    """Answer requests until `stop` is set and those in flight are answered; those that are not complete are dropped.

    Args:
        stop: Set by any thread or signal handler; noticed within 0.1 s.
        server: What the application serves.
        listener: A listening socket; closed in the end.
    """
    config = Config(
        create_app(server),
        loop="asyncio",
        http=connection_of(server.options.body_timeout_s),
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
    )
    _StoppableServer(config, stop).run(sockets=[listener])


class _StoppableServer(Server):
    def __init__(self, config: Config, stop: threading.Event) -> None:
        super().__init__(config)
        self._stop = stop

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self._stop.is_set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for connection in list(self.server_state.connections):
            if isinstance(connection, Connection) and connection.is_half_sent:
                connection.transport.abort()  # half a request: its other half may never come
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # signals are the caller's: uvicorn would raise them again when it has ended
