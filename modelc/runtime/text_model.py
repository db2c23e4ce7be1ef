"""What all models that write text have in common: prompts, conversations, streams. Making the tokens is the kind's."""

from __future__ import annotations

import queue
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from modelc.constraints import Constraint
from modelc.errors import BadInputError, BusyError
from modelc.ir import Model
from modelc.runtime.generation import Chunk, Generation, Sink
from modelc.runtime.loaded import LoadedModel
from modelc.runtime.log_probability import TokenLogprob
from modelc.runtime.sampling import Sampling
from modelc.runtime.texts import as_sequence
from modelc.text import ChatTemplate, encode_prompt, is_continued, shield_messages


class TextModel(LoadedModel, ABC):
    """A model that answers prompts.

    Attributes:
        n_ctx: longest sequence.
    """

    n_ctx: int

    def __init__(self, model: Model, n_threads: int) -> None:
        super().__init__(model, n_threads)
        self._template = ChatTemplate(self.chat_template)

    def as_text_model(self) -> TextModel:
        """The same object."""
        return self

    @abstractmethod
    def submit(
        self,
        prompt_ids: Sequence[int],
        sampling: Sampling,
        sink: Sink,
        *,
        continues: bool = False,
        shown: frozenset[int] = frozenset(),
    ) -> Generation:
        """Start an answer; `sink` gets its chunks from another thread, the last one with a finish reason.

        `continues`: the answer goes on with the prompt's text, so a space at its beginning belongs to it.
        `shown`: control tokens that stay in the text.

        Raises:
            BadInputError: the prompt is empty, too long, or has tokens outside the vocabulary; or `sampling` is out
                of range.
        """

    def check_constraint(self, constraint: Constraint) -> None:
        """Raise BadInputError for a constraint that answers cannot follow; slow the first time.

        A model that does not choose its tokens takes any.
        """

    def stream(self, prompt: str | Sequence[int], **sampling: Any) -> Iterator[str]:
        """The answer to `prompt`, piece by piece; keywords as in `Sampling`. Closing the iterator stops it."""
        ids = self.tokenize(prompt, parse_special=True) if isinstance(prompt, str) else prompt
        return self._stream(ids, isinstance(prompt, str), Sampling.of(sampling))

    def _stream(self, ids: Sequence[int], continues: bool, sampling: Sampling) -> Iterator[str]:
        chunks: queue.SimpleQueue[Chunk] = queue.SimpleQueue()
        generation = self.submit(ids, sampling, chunks.put, continues=continues)
        try:
            while True:
                chunk = chunks.get()
                if chunk.text:
                    yield chunk.text
                if chunk.finish_reason is not None:
                    if generation.error is not None:
                        raise generation.error
                    if chunk.finish_reason == "cancelled":
                        raise BusyError("the model was closed before the answer's end")
                    return
        finally:
            generation.cancel()

    def generate(self, prompt: str | Sequence[int], **sampling: Any) -> str:
        """The answer to `prompt`; keywords are the fields of `Sampling`."""
        return "".join(self.stream(prompt, **sampling))

    def score(self, prompt: str | Sequence[int], top_logprobs: int = 0) -> list[TokenLogprob]:
        """How likely each token of `prompt` behind its first is after those before it.

        Args:
            prompt: a text, or token ids.
            top_logprobs: how many of the most likely tokens are wanted beside each, 0 to 20.
        """
        ids = self.tokenize(prompt, parse_special=True) if isinstance(prompt, str) else prompt
        chunks: queue.SimpleQueue[Chunk] = queue.SimpleQueue()
        sampling = Sampling(max_tokens=0, top_logprobs=top_logprobs, prompt_logprobs=True)
        generation = self.submit(ids, sampling, chunks.put)
        chunk = chunks.get()
        if generation.error is not None:
            raise generation.error
        if chunk.finish_reason == "cancelled":
            raise BusyError("the model was closed before the prompt's end")
        return list(chunk.prompt_logprobs)

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        continue_final_message: bool | None = None,
        **sampling: Any,
    ) -> str:
        """The assistant's next message, or what follows a last message of its own.

        Args:
            messages: the conversation.
            continue_final_message: go on with the last message, whoever's it is; False: begin a new one.
            **sampling: fields of `Sampling`.

        Raises:
            BadInputError: messages or sampling that are none, or a last message that cannot be continued.
        """
        given = as_sequence(messages, "messages", "a list of messages")
        if not all(isinstance(message, Mapping) for message in given):
            raise BadInputError("wrong type", param="messages", expected="messages with a role and a content")
        continues = is_continued(given, continue_final_message)
        ids = self.chat_prompt_ids(given, continue_final_message=continues)
        return "".join(self._stream(ids, continues, Sampling.of(sampling)))

    def chat_prompt_ids(
        self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Any] | None = None, **variables: Any
    ) -> list[int]:
        """Tokens of a conversation by the model's chat template, ready for the assistant's answer; BOS once at most.

        `variables`: more keywords of `ChatTemplate.render`.
        """
        tokenizer = self.tokenizer
        text = self._template.render(
            shield_messages(messages, tokenizer.special_texts),
            tools=shield_messages(tools, tokenizer.special_texts) if tools else None,
            bos_token=tokenizer.bos_token,
            eos_token=tokenizer.eos_token,
            **variables,
        )
        return encode_prompt(tokenizer, text)
