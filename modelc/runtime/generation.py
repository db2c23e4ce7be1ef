"""A request in flight: what its owner sees, and what the scheduler keeps about it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from modelc.errors import ModelcError
from modelc.runtime.log_probability import log_probability
from modelc.runtime.sampler import Sampler
from modelc.runtime.sampling import Sampling
from modelc.runtime.speculation import Speculator
from modelc.text import StopStrings, StreamDecoder


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of an answer.

    Attributes:
        text: whole characters; may be empty.
        token_ids: the tokens that this step added.
        finish_reason: None until the last chunk; then `stop`, `length`, `cancelled` or `error`.
        logprobs: natural logarithms of the tokens' probabilities, before temperature and penalties; empty when they
            were not asked for.
    """

    text: str
    token_ids: tuple[int, ...] = ()
    finish_reason: str | None = None
    logprobs: tuple[float, ...] = ()


Sink = Callable[[Chunk], None]


class Generation:
    """An answer being made, as its owner sees it. Chunks go to the sink, from the scheduler's thread.

    Attributes:
        prompt_tokens: tokens of the prompt.
        cached_tokens: those of them whose keys and values were there already.
        completion_tokens: tokens of the answer so far, a final end-of-generation token included.
        seed: of the draws.
        finish_reason: None until the end.
        error: what went wrong, when `finish_reason` is `error`.
        submitted_s: when it was made, by `time.perf_counter`.
        started_s: when it got its place in the batch, None before.
    """

    def __init__(self, prompt_tokens: int, seed: int) -> None:
        self.prompt_tokens = prompt_tokens
        self.cached_tokens = 0
        self.completion_tokens = 0
        self.seed = seed
        self.finish_reason: str | None = None
        self.error: ModelcError | None = None
        self.submitted_s = time.perf_counter()
        self.started_s: float | None = None
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled

    def cancel(self) -> None:
        """Stop before the next token; the sink gets a last chunk with `cancelled`."""
        self._cancelled = True


class Request:
    """A generation with all that makes it: tokens, pages, sampler, decoder.

    Attributes:
        tokens: prompt and answer.
        computed: how many of them have keys and values.
        dropped: tokens that were shifted out of the context.
        pages: page numbers, one for each 64 positions.
        slot: row of the engine's page table, -1 while waiting.
        generation: what the owner sees.
        sampling: what was asked.
    """

    def __init__(
        self,
        prompt: Sequence[int],
        sampling: Sampling,
        sampler: Sampler,
        end_ids: frozenset[int],
        decoder: StreamDecoder,
        sink: Sink,
        speculator: Speculator | None = None,
    ) -> None:
        self.tokens = list(prompt)
        self.computed = 0
        self.dropped = 0
        self.pages: list[int] = []
        self.slot = -1
        self.sampling = sampling
        self.generation = Generation(len(prompt), sampler.seed)
        self._sampler = sampler
        self._end_ids = end_ids
        self._decoder = decoder
        self._stops = StopStrings(sampling.stop)
        self._sink = sink
        self._speculator = speculator

    @property
    def last_position(self) -> int:
        """Positions that prompt and longest answer need."""
        return self.generation.prompt_tokens + self.sampling.max_tokens

    def propose(self, most: int) -> list[int]:
        """At most `most` tokens that may come next."""
        left = self.sampling.max_tokens - self.generation.completion_tokens - 1
        return self._speculator.propose(self.tokens, min(most, left)) if self._speculator is not None else []

    def accept(self, logits: npt.NDArray[np.float32], rows: Sequence[int], limit: int | None) -> int:
        """Choose the next tokens and pass their text on; ends the generation where it must.

        Args:
            logits: float32 (n, vocab_size), after the last n of `rows`.
            rows: the tokens whose logits these are: the sequence's last, and those that were proposed behind it.
            limit: longest sequence, None when it is shifted instead.

        Returns:
            How many of the proposed tokens were chosen.
        """
        proposed = rows[len(rows) - len(logits) + 1 :]
        for i, row in enumerate(logits):
            token = self._choose(row, limit)
            if self.generation.finish_reason is not None or i == len(proposed) or token != proposed[i]:
                break
        if self._speculator is not None:
            self._speculator.note(len(proposed), i)
        return i

    def _choose(self, logits: npt.NDArray[np.float32], limit: int | None) -> int:
        token = self._sampler.next(logits, self.dropped + len(self.tokens))
        self.generation.completion_tokens += 1
        logprobs = (log_probability(logits, token),) if self.sampling.logprobs else ()
        if token in self._end_ids:
            self.end("stop", (token,), logprobs=logprobs)
            return token
        self.tokens.append(token)
        text = self._stops.push(self._decoder.push(token))
        full = limit is not None and len(self.tokens) >= limit
        if self._stops.matched is not None:
            self.finish(Chunk(text, (token,), "stop", logprobs))
        elif full or self.generation.completion_tokens >= self.sampling.max_tokens:
            self.end("length", (token,), text, logprobs)
        else:
            self._send(Chunk(text, (token,), None, logprobs))
        return token

    def drop(self, anchor: int, count: int) -> None:
        """Forget `count` tokens behind the first `anchor`: their keys and values are gone."""
        del self.tokens[anchor : anchor + count]
        self.computed -= count
        self.dropped += count
        if self._speculator is not None:
            self._speculator.forget()

    def end(
        self, reason: str, token_ids: tuple[int, ...] = (), text: str = "", logprobs: tuple[float, ...] = ()
    ) -> None:
        """End with what the decoder and the stop strings held back."""
        text += self._stops.push(self._decoder.flush())
        if self._stops.matched is None:
            text += self._stops.flush()
        self.finish(Chunk(text, token_ids, reason, logprobs))

    def fail(self, error: ModelcError) -> None:
        """End with an error."""
        self.generation.error = error
        self.finish(Chunk("", (), "error"))

    def finish(self, chunk: Chunk) -> None:
        """Send the last chunk."""
        self.generation.finish_reason = chunk.finish_reason
        self._send(chunk)

    def _send(self, chunk: Chunk) -> None:
        try:
            self._sink(chunk)
        except Exception:  # the owner is gone (an event loop that closed, say); the other requests go on
            self.generation.cancel()
