"""What `/v1/chat/completions` answers: its shapes, and how a choice is put together from what a model writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import UNSET, UnsetType

from modelc.api.generation import Choice
from modelc.api.logprobs import ContentLogprobs, content_logprobs
from modelc.api.messages import FunctionCall, ToolCall
from modelc.api.openai_shapes import SYSTEM_FINGERPRINT, Usage, new_id

if TYPE_CHECKING:
    from modelc.runtime import Chunk
    from modelc.text import AnswerReader, Tokenizer
    from modelc.text.answer_reader import Part


class AnswerMessage(msgspec.Struct, kw_only=True):
    """What the model said; `content` is null where it only called tools."""

    role: Literal["assistant"] = "assistant"
    content: str | None
    reasoning_content: str | UnsetType = UNSET
    tool_calls: list[ToolCall] | UnsetType = UNSET
    refusal: None = None


class MessageChoice(msgspec.Struct, kw_only=True):
    """One answer; `finish_reason` is stop, length or tool_calls."""

    index: int
    message: AnswerMessage
    logprobs: ContentLogprobs | None = None
    finish_reason: str


class ChatCompletion(msgspec.Struct, kw_only=True):
    """A whole answer; `seed` is the first choice's, the next ones have the next seeds."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    system_fingerprint: str = SYSTEM_FINGERPRINT
    seed: int
    choices: list[MessageChoice]
    usage: Usage


class FunctionDelta(msgspec.Struct, kw_only=True, omit_defaults=True):
    """More of a call: its function's name once, then pieces of the arguments' JSON text."""

    name: str | UnsetType = UNSET
    arguments: str | UnsetType = UNSET


class ToolCallDelta(msgspec.Struct, kw_only=True, omit_defaults=True):
    """More of the call number `index`; its id and type come once."""

    index: int
    id: str | UnsetType = UNSET
    type: Literal["function"] | UnsetType = UNSET
    function: FunctionDelta


class Delta(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What a chunk adds to the message."""

    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType = UNSET
    reasoning_content: str | UnsetType = UNSET
    tool_calls: list[ToolCallDelta] | UnsetType = UNSET


class ChunkChoice(msgspec.Struct, kw_only=True):
    """One answer's part of a chunk."""

    index: int
    delta: Delta
    logprobs: ContentLogprobs | None = None
    finish_reason: str | None = None


class ChatCompletionChunk(msgspec.Struct, kw_only=True):
    """One event of a streamed answer."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    system_fingerprint: str = SYSTEM_FINGERPRINT
    seed: int
    choices: list[ChunkChoice]
    usage: Usage | UnsetType | None = UNSET  # null on all chunks but the last, where usage is asked for


class ChoiceWriter:
    """Puts one choice together from what the model writes.

    Args:
        index: Of the choice.
        tokenizer: The model's.
        reader: Tells the parts of its text apart.
        has_logprobs: Whether log-probabilities are wanted.
    """

    def __init__(self, index: int, tokenizer: Tokenizer, reader: AnswerReader, has_logprobs: bool) -> None:
        self.index = index
        self._tokenizer = tokenizer
        self._has_logprobs = has_logprobs
        self._reader = reader
        self._n_calls = 0

    def whole(self, choice: Choice) -> MessageChoice:
        """Return a choice that has ended."""
        words: dict[str, list[str]] = {"content": [], "reasoning": []}
        calls: list[ToolCall] = []
        for part in [*self._reader.push(choice.text), *self._reader.finish()]:
            match part.kind:
                case "call":
                    calls.append(ToolCall(id=new_id("call_"), function=FunctionCall(part.text, "")))
                case "arguments":
                    calls[part.call].function.arguments += part.text
                case _:
                    words[part.kind].append(part.text)
        self._n_calls = len(calls)
        content, reasoning = "".join(words["content"]), "".join(words["reasoning"])
        message = AnswerMessage(
            content=content if content or not calls else None,
            reasoning_content=reasoning or UNSET,
            tool_calls=calls or UNSET,
        )
        return MessageChoice(
            index=self.index,
            message=message,
            logprobs=self._logprobs(choice),
            finish_reason=self._reason(choice.finish_reason),
        )

    def pieces(self, chunk: Chunk) -> Iterator[ChunkChoice]:
        """Yield what a chunk of the generation adds."""
        parts = self._reader.push(chunk.text)
        if chunk.finish_reason is not None:
            parts += self._reader.finish()
        deltas = [self._delta(part) for part in parts]
        logprobs = self._logprobs(chunk)
        if logprobs is not None and logprobs.content and not deltas:
            deltas.append(Delta(content=""))
        for delta in deltas:
            yield ChunkChoice(index=self.index, delta=delta, logprobs=logprobs)
            logprobs = None
        if chunk.finish_reason is not None:
            yield ChunkChoice(index=self.index, delta=Delta(), finish_reason=self._reason(chunk.finish_reason))

    def _delta(self, part: Part) -> Delta:
        match part.kind:
            case "reasoning":
                return Delta(reasoning_content=part.text)
            case "content":
                return Delta(content=part.text)
            case "arguments":
                call = ToolCallDelta(index=part.call, function=FunctionDelta(arguments=part.text))
            case "call":
                self._n_calls += 1
                function = FunctionDelta(name=part.text, arguments="")
                call = ToolCallDelta(index=part.call, id=new_id("call_"), type="function", function=function)
        return Delta(tool_calls=[call])

    def _logprobs(self, part: Chunk | Choice) -> ContentLogprobs | None:
        """Of the tokens, without the one that ends the answer."""
        if not self._has_logprobs:
            return None
        return content_logprobs(self._tokenizer, [p for p in part.logprobs if p.token not in self._tokenizer.eog_ids])

    def _reason(self, reason: str) -> str:
        return "tool_calls" if self._n_calls and reason == "stop" else reason
