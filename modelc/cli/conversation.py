"""A conversation with a model: what was said, how it answers, and what of it fits into the context."""

from __future__ import annotations

import queue
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelc.errors import BadInputError, BusyError

if TYPE_CHECKING:
    from modelc.runtime import Chunk, Generation, TextModel

ROOM = 4  # an answer may take one part in this many of the context before old messages have to go


@dataclass(frozen=True, slots=True)
class Answer:
    """How the last answer came about."""

    finish_reason: str  # "stop", "length" or "cancelled"
    prompt_tokens: int
    cached_tokens: int  # of the prompt, with keys and values from before
    tokens: int
    first_s: float  # until the first token
    total_s: float

    def __str__(self) -> str:
        rest_s = self.total_s - self.first_s
        rate = f", {(self.tokens - 1) / rest_s:.0f} tokens/s" if self.tokens > 1 and rest_s > 0 else ""
        prompt = f"{self.prompt_tokens} prompt tokens ({self.cached_tokens} cached)"
        return f"{prompt}, first token after {self.first_s:.2f} s, {self.tokens} tokens{rate}"


class Conversation:
    """Messages in order, and the options of the answers.

    Attributes:
        system: the system message, None for none.
        messages: user and assistant in turn.
        sampling: fields of `Sampling` by name.
        last: how the last answer came about.
        left_out: messages that no longer fitted into the context when the last answer was made.
        saved: files that this conversation was written to.
    """

    def __init__(self, model: TextModel, sampling: dict[str, Any], system: str | None = None) -> None:
        """Begin one; `sampling` holds fields of `Sampling`.

        Raises:
            BadInputError: a value is out of range.
        """
        self.model = model
        self.system = system
        self.messages: list[dict[str, str]] = []
        self.sampling: dict[str, Any] = {}
        self.last: Answer | None = None
        self.left_out = 0
        self.saved: set[Path] = set()
        self.set(**sampling)

    def set(self, **sampling: Any) -> None:
        """Change fields of `Sampling`; None brings the built-in value back.

        Raises:
            BadInputError: a value is out of range; nothing is changed.
        """
        from modelc.runtime import Sampling

        changed = {name: value for name, value in (self.sampling | sampling).items() if value is not None}
        Sampling(**changed).check(self.model.vocab_size)
        self.sampling = changed

    def clear(self) -> None:
        """Forget all messages but the system's."""
        self.messages = []

    def ask(self, text: str) -> Generator[str, None, None]:
        """The answer to `text`, piece by piece.

        Closing the iterator, or an interruption, stops the model; what had come of the answer stays in the
        conversation.

        Raises:
            BadInputError: the message is longer than the context.
        """
        from modelc.runtime import Sampling

        ids = self._prompt_ids([*self.messages, {"role": "user", "content": text}])
        chunks: queue.SimpleQueue[Chunk] = queue.SimpleQueue()
        pieces: list[str] = []
        began_s = time.perf_counter()
        first_s = 0.0
        generation = self.model.submit(ids, Sampling(**self.sampling), chunks.put)
        try:
            reason = None
            while reason is None:
                chunk = chunks.get()
                first_s = first_s or time.perf_counter() - began_s
                reason = chunk.finish_reason
                if chunk.text:
                    pieces.append(chunk.text)
                    yield chunk.text
        finally:
            generation.cancel()
            if pieces:
                answer = {"role": "assistant", "content": "".join(pieces)}
                self.messages += [{"role": "user", "content": text}, answer]
            self.last = _answer(generation, first_s, time.perf_counter() - began_s)
        if generation.error is not None:
            raise generation.error
        if reason == "cancelled":
            raise BusyError("the model was closed before the answer's end")

    def _prompt_ids(self, messages: list[dict[str, str]]) -> list[int]:
        """Tokens of the prompt; the oldest exchanges are left out where they do not fit."""
        system = [] if self.system is None else [{"role": "system", "content": self.system}]
        limit = self.model.n_ctx - 1
        newest = messages[-1]["content"]
        if self.model.tokenizer.least_tokens(newest) > limit:
            raise BadInputError("the message is longer than the context", expected=f"at most {limit} tokens")
        ids = self.model.chat_prompt_ids([*system, *messages])
        self.left_out = 0
        while len(ids) > limit - limit // ROOM and self.left_out + 2 < len(messages):
            self.left_out += 2
            ids = self.model.chat_prompt_ids([*system, *messages[self.left_out :]])
        return ids


def _answer(generation: Generation, first_s: float, total_s: float) -> Answer:
    return Answer(
        finish_reason=generation.finish_reason or "cancelled",
        prompt_tokens=generation.prompt_tokens,
        cached_tokens=generation.cached_tokens,
        tokens=generation.completion_tokens,
        first_s=first_s,
        total_s=total_s,
    )
