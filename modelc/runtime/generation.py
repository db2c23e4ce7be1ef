"""A request in flight: what its owner sees, and what the scheduler keeps about it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from modelc.errors import BadFileError, ModelcError
from modelc.runtime.log_probability import LogProbabilities, TokenLogprob
from modelc.runtime.sampler import Sampler
from modelc.runtime.sampling import Sampling
from modelc.runtime.speculation import Speculator
from modelc.text import StopStrings, StreamDecoder

if TYPE_CHECKING:
    from modelc.runtime.engine import Engine


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of an answer.

    Attributes:
        text: whole characters; may be empty.
        token_ids: the tokens that this step added.
        finish_reason: None until the last chunk; then `stop`, `length`, `cancelled` or `error`.
        logprobs: how likely the tokens were, before temperature and penalties; empty when that was not asked for.
        prompt_logprobs: how likely the prompt's tokens behind its first were, where that was asked for: in a chunk
            without tokens before the answer.
    """

    text: str
    token_ids: tuple[int, ...] = ()
    finish_reason: str | None = None
    logprobs: tuple[TokenLogprob, ...] = ()
    prompt_logprobs: tuple[TokenLogprob, ...] = ()


Sink = Callable[[Chunk], None]


class Generation:
    """An answer being made, as its owner sees it. Chunks go to the sink, from the scheduler's thread.

    Attributes:
        prompt_tokens: tokens of the prompt.
        cached_tokens: those of them whose keys and values were there already.
        completion_tokens: tokens of the answer so far, a final end-of-generation token included.
        seed: of the draws.
        finish_reason: None until the end.
        stop_string: the one that ended it, None where something else did.
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
        self.stop_string: str | None = None
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
        engine: runs it, from its submission to its end; None before.
        wants_hidden: whether it takes hidden states in place of logits.
    """

    wants_hidden = False

    def __init__(
        self,
        prompt: Sequence[int],
        sampling: Sampling,
        sampler: Sampler,
        end_ids: frozenset[int],
        decoder: StreamDecoder,
        log_probabilities: LogProbabilities,
        sink: Sink,
        speculator: Speculator | None = None,
    ) -> None:
        self.tokens = list(prompt)
        self.computed = 0
        self.dropped = 0
        self.pages: list[int] = []
        self.slot = -1
        self.engine: Engine | None = None
        self.sampling = sampling
        self.generation = Generation(len(prompt), sampler.seed)
        self._sampler = sampler
        self._end_ids = end_ids
        self._decoder = decoder
        self._log_probabilities = log_probabilities
        self._prompt_logprobs: list[TokenLogprob] = []
        self._stops = StopStrings(sampling.stop)
        self._sink = sink
        self._speculator = speculator
        self._guesses = False  # whether the last proposal was a guess

    @property
    def last_position(self) -> int:
        """Positions that prompt and longest answer need."""
        return self.generation.prompt_tokens + self.sampling.max_tokens

    def propose(self, most: int) -> list[int]:
        """At most `most` tokens that will come next, where that is known, or may come next."""
        most = min(most, self.sampling.max_tokens - self.generation.completion_tokens - 1)
        forced = self._sampler.forced
        self._guesses = self._speculator is not None and not forced
        if self._speculator is None or forced:
            return list(forced[: max(most, 0)])
        return self._sampler.allowed(self._speculator.propose(self.tokens, most))

    def outputs(self, first: int, count: int) -> int:
        """How many of the last of `count` rows of the prompt, from position `first` on, are wanted as logits."""
        if self.sampling.prompt_logprobs:
            return count
        return int(first + count == len(self.tokens))

    def score(self, logits: npt.NDArray[np.float32], position: int) -> int:
        """Note how likely the prompt's tokens are that follow these rows; passes all on when they are known.

        Args:
            logits: float32 (n, vocab_size), of rows from `position` on.
            position: of the first row.

        Returns:
            How many of the rows the next token is not chosen from.
        """
        n_prompt = self.generation.prompt_tokens
        if not self.sampling.prompt_logprobs or self.generation.completion_tokens:
            return 0
        count = min(len(logits), n_prompt - 1 - position)
        for row, token in zip(logits[:count], self.tokens[position + 1 : n_prompt], strict=False):
            self._prompt_logprobs.append(self._log_probability(row, token))
        if position + count < n_prompt - 1:
            return count
        chunk = Chunk("", prompt_logprobs=tuple(self._prompt_logprobs))
        if self.sampling.max_tokens == 0:
            self.finish(replace(chunk, finish_reason="length"))
            return len(logits)
        if count < len(logits):
            self._send(chunk)
        return count

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
        if self._speculator is not None and self._guesses:
            self._speculator.note(len(proposed), i)
        return i

    def _choose(self, logits: npt.NDArray[np.float32], limit: int | None) -> int:
        token = self._sampler.next(logits, self.dropped + len(self.tokens))
        self.generation.completion_tokens += 1
        logprobs = (self._log_probability(logits, token),) if self.sampling.logprobs else ()
        if token in self._end_ids:
            self.end("stop", (token,), logprobs=logprobs)
            return token
        self.tokens.append(token)
        text = self._stops.push(self._decoder.push(token))
        full = limit is not None and len(self.tokens) >= limit
        if self._stops.matched is not None:
            self.finish(Chunk(text, (token,), "stop", logprobs))
        elif self._sampler.finished:
            self.end("stop", (token,), text, logprobs)
        elif full or self.generation.completion_tokens >= self.sampling.max_tokens:
            self.end("length", (token,), text, logprobs)
        else:
            self._send(Chunk(text, (token,), None, logprobs))
        return token

    def _log_probability(self, logits: npt.NDArray[np.float32], token: int) -> TokenLogprob:
        found = self._log_probabilities.of(logits, token, self.sampling.top_logprobs)
        if isnan(found.logprob):
            raise BadFileError("the model's logits are not finite numbers", hint="its weights are damaged")
        return found

    def drop(self, anchor: int, count: int) -> None:
        """Forget `count` tokens behind the first `anchor`: their keys and values are gone."""
        del self.tokens[anchor : anchor + count]
        self.computed -= count
        self.dropped += count
        if self._speculator is not None:
            self._speculator.forget()

    def end(
        self, reason: str, token_ids: tuple[int, ...] = (), text: str = "", logprobs: tuple[TokenLogprob, ...] = ()
    ) -> None:
        """End with what the decoder and the stop strings held back."""
        rest = self._decoder.flush()
        if self.sampling.constraint is None:  # else half a character would be no beginning of a match
            text += self._stops.push(rest)
        if self._stops.matched is None:
            text += self._stops.flush()
        elif reason == "length":
            reason = "stop"
        self.finish(Chunk(text, token_ids, reason, logprobs))

    def fail(self, error: ModelcError) -> None:
        """End with an error."""
        self.generation.error = error
        self.finish(Chunk("", (), "error"))

    def finish(self, chunk: Chunk) -> None:
        """Send the last chunk."""
        self.generation.finish_reason = chunk.finish_reason
        self.generation.stop_string = self._stops.matched
        self._send(chunk)

    def _send(self, chunk: Chunk) -> None:
        try:
            self._sink(chunk)
        except Exception:  # the owner is gone (an event loop that closed, say); the other requests go on
            self.generation.cancel()
