"""Work that would hold up the event loop, in the threads of its kind: no kind waits for another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

from modelc.api.generation import when_gone
from modelc.api.problems import ClientGoneError
from modelc.api.request import ApiRequest

T = TypeVar("T")


async def tokenizing(request: ApiRequest, work: Callable[[], T]) -> T:
    """Call `work`, which tokenizes, in a thread; not at all when the client goes before.

    Raises:
        ClientGoneError: The client went away before a thread was free.
    """
    return await _in_thread(request, request.server.tokenizing(len(await request.body())), work)


async def computing(request: ApiRequest, work: Callable[[], T]) -> T:
    """Call `work`, which runs the model or writes down what came of it, as `tokenizing` does."""
    return await _in_thread(request, request.server.computing, work)


async def _in_thread(request: ApiRequest, threads: Executor, work: Callable[[], T]) -> T:
    future = threads.submit(work)
    watcher = asyncio.create_task(when_gone(request.receive, future.cancel))
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        if not watcher.done():
            raise
        raise ClientGoneError("the client went away") from None
    finally:
        watcher.cancel()
