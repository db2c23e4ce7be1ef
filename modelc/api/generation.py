"""A generation as the event loop sees it: the engine's thread puts chunks in, a request takes text out."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

from modelc.api.problems import ContextLengthError
from modelc.errors import BadInputError, BusyError, ModelcError

if TYPE_CHECKING:
    from litestar.types import Receive

    from modelc.api.state import ServerState
    from modelc.runtime import Chunk, Sampling


class LiveGeneration:
    """One submitted generation; iterate it once for its pieces of text.

    Args:
        server: Whose model generates.
        prompt_ids: Tokens of the prompt.
        sampling: How tokens are chosen.
        param: The request's field that the prompt came from, for errors.

    Raises:
        BadInputError: The prompt is empty, or names tokens that do not exist.
        ContextLengthError: The prompt leaves no place in the context.
    """

    def __init__(self, server: ServerState, prompt_ids: Sequence[int], sampling: Sampling, param: str) -> None:
        model = server.model
        if not prompt_ids:
            raise BadInputError("the prompt has no tokens", param=param)
        if len(prompt_ids) >= model.n_ctx:  # the answer needs a place too
            got, expected = f"{len(prompt_ids)} tokens", f"fewer than the {model.n_ctx} tokens of the model's context"
            raise ContextLengthError("the prompt is too long", param=param, got=got, expected=expected)
        if not 0 <= min(prompt_ids) <= max(prompt_ids) < model.vocab_size:
            raise BadInputError("no such token", param=param, expected=f"0 to {model.vocab_size - 1}")
        self.finish_reason = ""
        self._metrics = server.metrics
        self._submitted_s = time.perf_counter()
        self._chunks: asyncio.Queue[Chunk] = asyncio.Queue()  # never more than max_tokens + 1 chunks
        loop = asyncio.get_running_loop()

        def sink(chunk: Chunk) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the process ends
                loop.call_soon_threadsafe(self._chunks.put_nowait, chunk)

        self._generation = model.submit(prompt_ids, sampling, sink)

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the prompt."""
        return self._generation.prompt_tokens

    @property
    def cached_tokens(self) -> int:
        """Tokens of the prompt whose state was still known."""
        return self._generation.cached_tokens

    @property
    def completion_tokens(self) -> int:
        """Tokens generated so far."""
        return self._generation.completion_tokens

    @property
    def seed(self) -> int:
        """The seed in use, also where the request gave none."""
        return self._generation.seed

    @property
    def headers(self) -> dict[str, str]:
        """Response headers for an answer made from this generation."""
        return {"x-modelc-seed": str(self.seed)}

    def cancel(self) -> None:
        """Stop at the next token; without effect on a generation that has ended."""
        self._generation.cancel()

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield the text as it comes; afterwards `finish_reason` is `stop` or `length`.

        Raises:
            ModelcError: The generation failed or was cancelled.
        """
        reason = None
        while reason is None:
            chunk = await self._chunks.get()
            reason = chunk.finish_reason
            if chunk.text:
                yield chunk.text
        self._metrics.durations.observe(time.perf_counter() - self._submitted_s)
        self._metrics.tokens.inc(self.completion_tokens)
        if reason == "error":
            raise self._generation.error or ModelcError("the generation failed")
        if reason == "cancelled":
            raise BusyError("the generation was cancelled")
        self.finish_reason = reason

    async def text(self) -> str:
        """Return the whole text when it is there; errors as when iterated."""
        return "".join([piece async for piece in self])


@contextlib.asynccontextmanager
async def cancelled_with_client(receive: Receive, generations: Sequence[LiveGeneration]) -> AsyncIterator[None]:
    """Stop the generations when the client goes away, and in any case when the block is left.

    Args:
        receive: The request's ASGI channel, the body already read.
        generations: What runs for this client.
    """

    def cancel_all() -> None:
        for generation in generations:
            generation.cancel()

    watcher = asyncio.create_task(_when_gone(receive, cancel_all))
    try:
        yield
    finally:
        watcher.cancel()
        cancel_all()


async def texts_of(receive: Receive, generations: Sequence[LiveGeneration]) -> list[str]:
    """Return the whole texts of generations that run side by side; they stop when the client goes away."""
    async with cancelled_with_client(receive, generations):
        return [await generation.text() for generation in generations]


async def _when_gone(receive: Receive, then: Callable[[], None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    then()
