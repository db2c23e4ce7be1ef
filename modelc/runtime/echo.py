"""What answers for a model that cannot be run: the input, unchanged."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from modelc.errors import BadInputError
from modelc.ir import Model
from modelc.runtime.generation import Chunk, Generation, Sink
from modelc.runtime.sampling import Sampling
from modelc.runtime.text_model import TextModel
from modelc.runtime.texts import as_ids, check_ids, token_lists
from modelc.runtime.vectors import as_rows

logger = logging.getLogger(__name__)

MAX_TOKENS = 1 << 20  # of an input


class EchoModel(TextModel):
    """Answers prompts with themselves, conversations with the last message of the user, vectors with themselves."""

    kind = "a model of an unknown architecture"
    abilities = ("generate", "embed", "infer")
    fallback = "echo"

    def __init__(self, model: Model, n_threads: int) -> None:
        super().__init__(model, n_threads)
        self.n_ctx = MAX_TOKENS
        logger.warning(
            "the architecture '%s' of %s cannot be run: every answer is its input", self.architecture, self.name
        )

    def submit(
        self,
        prompt_ids: Sequence[int],
        sampling: Sampling,
        sink: Sink,
        *,
        continues: bool = False,
        shown: frozenset[int] = frozenset(),
    ) -> Generation:
        """Answer at once, in this thread, with one chunk: the text of the prompt."""
        sampling.check(self.vocab_size)
        prompt = as_ids(prompt_ids, "prompt")
        check_ids(prompt, self.vocab_size, self.n_ctx, "prompt")
        seed = secrets.randbits(63) if sampling.seed is None else sampling.seed
        generation = Generation(len(prompt), seed)
        generation.started_s = generation.submitted_s
        generation.completion_tokens = len(prompt)
        generation.finish_reason = "stop"
        sink(Chunk(self.tokenizer.decode(prompt, skip_special=True), tuple(prompt), "stop"))
        return generation

    def chat_prompt_ids(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Any] | None = None, **variables: Any
    ) -> list[int]:
        """Tokens of the last message that the user wrote, of the last one where the user wrote none."""
        written = [message for message in messages if message.get("role") == "user"] or list(messages)
        if not written:
            raise BadInputError("there is no message", param="messages")
        return self.tokenize(str(written[-1].get("content") or ""), add_special=False)

    def embed(self, texts: str | Sequence[int] | Sequence[str] | Sequence[Sequence[int]]) -> Any:
        """The token ids as floats: one vector, or a list of them, of different lengths."""
        tokens, alone = token_lists(texts, self.tokenize)
        for ids in tokens:
            check_ids(ids, self.vocab_size, self.n_ctx, "texts")
        vectors = [np.array(ids, np.float32) for ids in tokens]
        return vectors[0] if alone else vectors

    def infer(self, values: Any) -> Any:
        """The values themselves: a vector, or a list of them."""
        as_rows(values)
        return values
