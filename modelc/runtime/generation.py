"""A request in flight: what its owner sees, and what the scheduler keeps about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from modelc.errors import ModelcError
from modelc.runtime.sampler import Sampler
from modelc.runtime.sampling import Sampling
from modelc.text import StopStrings, StreamDecoder, Tokenizer


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of an answer.

    Attributes:
        text: whole characters; may be empty.
        token_ids: the tokens that this step added.
        finish_reason: None until the last chunk; then `stop`, `length`, `cancelled` or `error`.
    """

    text: str
    token_ids: tuple[int, ...] = ()
    finish_reason: str | None = None


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
    """

    def __init__(self, prompt_tokens: int, seed: int) -> None:
        self.prompt_tokens = prompt_tokens
        self.cached_tokens = 0
        self.completion_tokens = 0
        self.seed = seed
        self.finish_reason: str | None = None
        self.error: ModelcError | None = None
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
        pages: page numbers, one for each 64 positions.
        slot: row of the engine's page table, -1 while waiting.
        generation: what the owner sees.
        sampling: what was asked.
    """

    def __init__(
        self, prompt: Sequence[int], sampling: Sampling, sampler: Sampler, tokenizer: Tokenizer, sink: Sink
    ) -> None:
        self.tokens = list(prompt)
        self.computed = 0
        self.pages: list[int] = []
        self.slot = -1
        self.sampling = sampling
        self.generation = Generation(len(prompt), sampler.seed)
        self._sampler = sampler
        self._end_ids = tokenizer.eog_ids
        self._decoder = StreamDecoder(tokenizer, skip_special=True)
        self._stops = StopStrings(sampling.stop)
        self._sink = sink

    @property
    def last_position(self) -> int:
        """Positions that prompt and longest answer need."""
        return self.generation.prompt_tokens + self.sampling.max_tokens

    def accept(self, logits: npt.NDArray[np.float32], limit: int) -> None:
        """Choose the next token from its logits and pass its text on; ends the generation where it must.

        Args:
            logits: float32 (vocab_size,).
            limit: longest sequence.
        """
        token = self._sampler.next(logits, len(self.tokens))
        self.generation.completion_tokens += 1
        if token in self._end_ids:
            self.end("stop", (token,))
            return
        self.tokens.append(token)
        text = self._stops.push(self._decoder.push(token))
        if self._stops.matched is not None:
            self.finish(Chunk(text, (token,), "stop"))
        elif self.generation.completion_tokens >= self.sampling.max_tokens or len(self.tokens) >= limit:
            self.end("length", (token,), text)
        else:
            self._send(Chunk(text, (token,)))

    def end(self, reason: str, token_ids: tuple[int, ...] = (), text: str = "") -> None:
        """End with what the decoder and the stop strings held back."""
        text += self._stops.push(self._decoder.flush())
        if self._stops.matched is None:
            text += self._stops.flush()
        self.finish(Chunk(text, token_ids, reason))

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
