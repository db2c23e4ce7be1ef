"""A model that answers without computing: what it says is made of the last message."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from modelc.errors import BadFileError, BadInputError, ModelcError
from modelc.runtime import Chunk, Sampling


class TalkingGeneration:
    cached_tokens = 2
    finish_reason: str | None = None
    error: ModelcError | None = None

    def __init__(self, prompt_tokens: int) -> None:
        self.prompt_tokens = prompt_tokens
        self.completion_tokens = 0
        self.cancelled = threading.Event()

    def cancel(self) -> None:
        self.cancelled.set()


class TalkingModel:
    """Repeats the last message, word by word; `for ever` never ends, what begins with `fail` fails."""

    name = "talker"
    vocab_size = 300
    n_ctx = 200
    fallback = None
    tokenizer = SimpleNamespace(least_tokens=lambda text: len(text) // 4)

    def __init__(self) -> None:
        self.conversations: list[list[dict[str, str]]] = []
        self.samplings: list[Sampling] = []
        self.closed = False

    def __enter__(self) -> TalkingModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True

    def as_text_model(self) -> TalkingModel:
        return self

    def chat_prompt_ids(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        self.conversations.append([dict(message) for message in messages])
        return list("".join(message["content"] for message in messages).encode())

    def submit(self, prompt_ids: list[int], sampling: Sampling, sink: Callable[[Chunk], None]) -> TalkingGeneration:
        if len(prompt_ids) >= self.n_ctx:
            raise BadInputError("the prompt is longer than the context", param="prompt")
        self.samplings.append(sampling)
        generation = TalkingGeneration(len(prompt_ids))
        threading.Thread(target=self._answer, args=(generation, sampling, sink), daemon=True).start()
        return generation

    def _answer(self, generation: TalkingGeneration, sampling: Sampling, sink: Callable[[Chunk], None]) -> None:
        asked = self.conversations[-1][-1]["content"]
        words = [word + " " for word in asked.split(" ")]
        reason = "stop"
        while words and reason == "stop":
            if generation.cancelled.is_set():
                reason = "cancelled"
            elif asked.startswith("fail") and generation.completion_tokens:
                generation.error = BadFileError("the file changed")
                reason = "error"
            elif generation.completion_tokens >= sampling.max_tokens:
                reason = "length"
            else:
                generation.completion_tokens += 1
                sink(Chunk(words.pop(0), (1,)))
                if asked == "for ever":
                    words = words or ["and ", "ever "]
                    time.sleep(0.01)
        generation.finish_reason = reason
        sink(Chunk("", (), reason))
