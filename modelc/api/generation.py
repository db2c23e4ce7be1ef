"""An answer as the event loop sees it: the engine's thread puts chunks in, a request takes them out."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from modelc.api.answer_checks import AnswerChecks
from modelc.api.answer_format import ANY_TEXT, AnswerFormat
from modelc.api.problems import ClientGoneError, ContextLengthError
from modelc.errors import BadInputError, BusyError, ModelcError
from modelc.sampling_ranges import RANGES

if TYPE_CHECKING:
    from litestar.types import Receive

    from modelc.api.state import ServerState
    from modelc.runtime import Chunk, Generation, Sampling, TextModel, TokenLogprob

N_SEEDS = 1 << 63  # behind the last one comes 0
MAX_UNREAD = 1 << 16  # chunks that wait for a client that stopped reading; then its generations stop


class LiveAnswer:
    """The generations of one request, side by side: `n` choices of each prompt. Iterate it once.

    Attributes:
        generations: All of them, prompt by prompt, the choices of one prompt together.
        prompt_ids: Tokens of each prompt.

    Args:
        server: Whose model generates.
        n: Choices of each prompt.
    """

    def __init__(self, server: ServerState, n: int = 1) -> None:
        self.generations: list[Generation] = []
        self.prompt_ids: list[Sequence[int]] = []
        self._n = n
        self._cancelled = False
        self._model = server.model.as_text_model()
        self._metrics = server.metrics
        self._loop = asyncio.get_running_loop()
        self._chunks: deque[tuple[int, Chunk]] = deque()
        self._arrived = asyncio.Event()
        self._is_told = False  # the event loop was woken and has not looked yet
        self._waits_for_ends = False
        self._wanted = ANY_TEXT
        self._submissions: list[tuple[Callable[[Sampling], Generation], Sampling]] = []

    def submit(
        self,
        prompts: Mapping[str, Sequence[int]],
        sampling: Sampling,
        continues: bool = False,
        shown: frozenset[int] = frozenset(),
        wanted: AnswerFormat = ANY_TEXT,
    ) -> None:
        """Start everything; choice i of each prompt draws from seed + i. Any thread may call this, once.

        Args:
            prompts: Tokens of each prompt, by the request's field that it came from.
            sampling: How tokens are chosen.
            continues: Whether answers go on with the prompt's text, so that a space at their beginning counts.
            shown: Control tokens that stay in the answers' text.
            wanted: The form of the answers.

        Raises:
            BadInputError: A prompt is empty, or names tokens that do not exist; nothing was started.
            ContextLengthError: A prompt leaves no place in the context; nothing was started.
        """
        for param, prompt_ids in prompts.items():
            _check_prompt(self._model, prompt_ids, param)
        self.prompt_ids = list(prompts.values())
        self._wanted = wanted
        if wanted.constraint is not None:
            sampling = dataclasses.replace(sampling, constraint=wanted.constraint)
        with self._model.pinned():  # all with the same adapter
            for prompt_ids in prompts.values():
                for i in range(self._n):
                    if self.generations:  # the first one chose a seed where the request gave none
                        sampling = dataclasses.replace(sampling, seed=(self.seed + i) % N_SEEDS)
                    sink = partial(self._take, len(self.generations))
                    submit = partial(self._model.submit, prompt_ids, sink=sink, continues=continues, shown=shown)
                    self._submissions.append((submit, sampling))
                    self.generations.append(submit(sampling))

    def _repeat(self, index: int, warmer: float) -> None:
        submit, sampling = self._submissions[index]
        temperature = min(sampling.temperature + warmer, RANGES["temperature"].high)
        self.generations[index] = submit(dataclasses.replace(sampling, temperature=temperature))
        if self._cancelled:
            self.generations[index].cancel()

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
        fallback = self._model.fallback
        return {"x-modelc-seed": str(self.seed)} | ({} if fallback is None else {"x-modelc-fallback": fallback})

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
        checks = AnswerChecks(self._wanted, self._waits_for_ends, self._repeat)
        while left:
            await self._arrived.wait()
            self._arrived.clear()
            self._is_told = False
            arrived = [self._chunks.popleft() for _ in range(len(self._chunks))]
            self._metrics.tokens.inc(sum(len(chunk.token_ids) for _, chunk in arrived))
            for index, chunk in arrived:
                if chunk.finish_reason is not None:
                    self._note_end(self.generations[index], chunk.finish_reason)
                for passed in await checks.passed(index, chunk, self.generations[index]):
                    left -= passed.finish_reason is not None
                    yield index, passed

    def wait_for_ends(self) -> None:
        """Let chunks pile up until a generation ends: the event loop is not woken for each."""
        self._waits_for_ends = True

    def _take(self, index: int, chunk: Chunk) -> None:
        """Hand a chunk from the engine's thread to the event loop."""
        self._chunks.append((index, chunk))
        if self._is_told or (self._waits_for_ends and chunk.finish_reason is None):
            if len(self._chunks) > MAX_UNREAD and not self._waits_for_ends:
                self.cancel()
            return
        self._is_told = True
        with contextlib.suppress(RuntimeError):  # the loop is closed: the process ends
            self._loop.call_soon_threadsafe(self._arrived.set)

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
        prompt_logprobs: Of its prompt's tokens behind the first, where they were asked for.
    """

    text: str
    finish_reason: str
    logprobs: Sequence[TokenLogprob]
    prompt_logprobs: Sequence[TokenLogprob]


async def whole(receive: Receive, answer: LiveAnswer) -> list[Choice]:
    """Wait for all generations, which stop when the client goes away; errors as when `answer` is iterated.

    Args:
        receive: The request's ASGI channel, the body already read.
        answer: What runs for this client.
    """
    chunks: list[list[Chunk]] = [[] for _ in answer.generations]
    answer.wait_for_ends()
    async with cancelled_with_client(receive, answer):
        async for index, chunk in answer:
            chunks[index].append(chunk)
    return [
        Choice(
            "".join(chunk.text for chunk in each),
            each[-1].finish_reason or "",
            [known for chunk in each for known in chunk.logprobs],
            each[0].prompt_logprobs,
        )
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


def too_long(model: TextModel, n_tokens: str, param: str) -> ContextLengthError:
    """Return the error for a prompt of `n_tokens`, which leave no place in the context."""
    got, expected = f"{n_tokens} tokens", f"fewer than the {model.n_ctx} tokens of the model's context"
    return ContextLengthError("the prompt is too long", param=param, got=got, expected=expected)


def refuse_long(model: TextModel, text: str, param: str) -> None:
    """Refuse a text that is certainly too long before the time is spent to tokenize it."""
    n_tokens = model.tokenizer.least_tokens(text)
    if n_tokens >= model.n_ctx:
        raise too_long(model, f"at least {n_tokens}", param)


async def when_gone(receive: Receive, then: Callable[[], object]) -> None:
    """Call `then` when the client goes away; the body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass
    then()


def _check_prompt(model: TextModel, prompt_ids: Sequence[int], param: str) -> None:
    if not prompt_ids:
        raise BadInputError("the prompt has no tokens", param=param)
    if len(prompt_ids) >= model.n_ctx:  # the answer needs a place too
        raise too_long(model, str(len(prompt_ids)), param)
    if not 0 <= min(prompt_ids) <= max(prompt_ids) < model.vocab_size:
        raise BadInputError("no such token", param=param, expected=f"0 to {model.vocab_size - 1}")
