"""An answer as the event loop sees it: the engine's thread puts chunks in, a request takes them out."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from modelc.api.problems import ClientGoneError, ContextLengthError
from modelc.errors import BadInputError, BusyError, ModelcError

if TYPE_CHECKING:
    from litestar.types import Receive

    from modelc.api.state import ServerState
    from modelc.runtime import Chunk, Generation, LanguageModel, Sampling

N_SEEDS = 1 << 63  # behind the last one comes 0
MAX_UNREAD = 1 << 16  # chunks that wait for a client that stopped reading; then its generations stop


class LiveAnswer:
    """The generations of one request, side by side: `n` choices of each prompt. Iterate it once.

    Attributes:
        generations: All of them, prompt by prompt, the choices of one prompt together.

    Args:
        server: Whose model generates.
        n: Choices of each prompt.
    """

    def __init__(self, server: ServerState, n: int = 1) -> None:
        self.generations: list[Generation] = []
        self._n = n
        self._cancelled = False
        self._model = server.model
        self._metrics = server.metrics
        self._loop = asyncio.get_running_loop()
        self._chunks: asyncio.Queue[tuple[int, Chunk]] = asyncio.Queue()

    def submit(self, prompts: Mapping[str, Sequence[int]], sampling: Sampling, continues: bool = False) -> None:
        """Start everything; choice i of each prompt draws from seed + i. Any thread may call this, once.

        Args:
            prompts: Tokens of each prompt, by the request's field that it came from.
            sampling: How tokens are chosen.
            continues: Whether answers go on with the prompt's text, so that a space at their beginning counts.

        Raises:
            BadInputError: A prompt is empty, or names tokens that do not exist; nothing was started.
            ContextLengthError: A prompt leaves no place in the context; nothing was started.
        """
        for param, prompt_ids in prompts.items():
            _check_prompt(self._model, prompt_ids, param)
        for prompt_ids in prompts.values():
            for i in range(self._n):
                if self.generations:  # the first one chose a seed where the request gave none
                    sampling = dataclasses.replace(sampling, seed=(self.seed + i) % N_SEEDS)
                sink = partial(self._take, len(self.generations))
                self.generations.append(self._model.submit(prompt_ids, sampling, sink, continues=continues))

    @property
    def seed(self) -> int:
        """The seed of each prompt's first choice, also where the request gave none."""
        return self.generations[0].seed

    @property
    def prompts(self) -> list[Generation]:
        """The first generation of each prompt: what there is to tell about the prompt."""
        return self.generations[:: self._n]

    @property
    def headers(self) -> dict[str, str]:
        """Response headers."""
        return {"x-modelc-seed": str(self.seed)}

    def cancel(self) -> None:
        """Stop everything at the next token; without effect on generations that have ended."""
        self._cancelled = True
        for generation in self.generations:
            generation.cancel()

    async def __aiter__(self) -> AsyncIterator[tuple[int, Chunk]]:
        """Yield chunks as they come, with the index of their generation; each one's last chunk has a finish reason.

        Raises:
            ModelcError: A generation failed or was cancelled.
        """
        left = len(self.generations)
        while left:
            index, chunk = await self._chunks.get()
            self._metrics.tokens.inc(len(chunk.token_ids))
            if chunk.finish_reason is not None:
                self._note_end(self.generations[index], chunk.finish_reason)
                left -= 1
            yield index, chunk

    def _take(self, index: int, chunk: Chunk) -> None:
        """Hand a chunk from the engine's thread to the event loop."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: the process ends
            self._loop.call_soon_threadsafe(self._chunks.put_nowait, (index, chunk))
        if self._chunks.qsize() > MAX_UNREAD:
            self.cancel()

    def _note_end(self, generation: Generation, reason: str) -> None:
        self._metrics.durations.observe(time.perf_counter() - generation.submitted_s)
        if generation.started_s is not None:
            self._metrics.queue_times.observe(generation.started_s - generation.submitted_s)
        if reason == "error":
            raise generation.error or ModelcError("the generation failed")
        if reason == "cancelled" and self._cancelled:
            raise ClientGoneError("the client went away or stopped reading")
        if reason == "cancelled":
            raise BusyError("the generation was cancelled", hint="try again later")


@dataclass(slots=True)
class Choice:
    """A generation that has ended.

    Attributes:
        text: All of it.
        finish_reason: `stop` or `length`.
        logprobs: Of its tokens, where they were asked for.
    """

    text: str
    finish_reason: str
    logprobs: list[float]


async def whole(receive: Receive, answer: LiveAnswer) -> list[Choice]:
    """Wait for all generations, which stop when the client goes away; errors as when `answer` is iterated.

    Args:
        receive: The request's ASGI channel, the body already read.
        answer: What runs for this client.
    """
    chunks: list[list[Chunk]] = [[] for _ in answer.generations]
    async with cancelled_with_client(receive, answer):
        async for index, chunk in answer:
            chunks[index].append(chunk)
    return [
        Choice("".join(c.text for c in each), each[-1].finish_reason or "", [p for c in each for p in c.logprobs])
        for each in chunks
    ]


@contextlib.asynccontextmanager
async def cancelled_with_client(receive: Receive, answer: LiveAnswer) -> AsyncIterator[None]:
    """Stop the generations when the client goes away, and in any case when the block is left.

    Args:
        receive: The request's ASGI channel, the body already read.
        answer: What runs for this client.
    """
    watcher = asyncio.create_task(when_gone(receive, answer.cancel))
    try:
        yield
    finally:
        watcher.cancel()
        answer.cancel()


def too_long(model: LanguageModel, n_tokens: str, param: str) -> ContextLengthError:
    """Return the error for a prompt of `n_tokens`, which leave no place in the context."""
    got, expected = f"{n_tokens} tokens", f"fewer than the {model.n_ctx} tokens of the model's context"
    return ContextLengthError("the prompt is too long", param=param, got=got, expected=expected)


async def when_gone(receive: Receive, then: Callable[[], object]) -> None:
    """Call `then` when the client goes away; the body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass
    then()


def _check_prompt(model: LanguageModel, prompt_ids: Sequence[int], param: str) -> None:
    if not prompt_ids:
        raise BadInputError("the prompt has no tokens", param=param)
    if len(prompt_ids) >= model.n_ctx:  # the answer needs a place too
        raise too_long(model, str(len(prompt_ids)), param)
    if not 0 <= min(prompt_ids) <= max(prompt_ids) < model.vocab_size:
        raise BadInputError("no such token", param=param, expected=f"0 to {model.vocab_size - 1}")
