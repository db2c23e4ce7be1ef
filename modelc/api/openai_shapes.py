"""What the answers of OpenAI's text endpoints have in common."""

from __future__ import annotations

import uuid
from typing import Annotated

import msgspec
from msgspec import Meta

from modelc.api.generation import LiveAnswer
from modelc.sampling_ranges import MAX_TOP_LOGPROBS
from modelc.version import __version__

SYSTEM_FINGERPRINT = f"modelc-{__version__}"
MAX_CHOICES = 20
ChoiceCount = Annotated[int, Meta(description=f"choices for each prompt, 1 to {MAX_CHOICES}; others are clamped")]

TopLogprobs = Annotated[
    int, Meta(description=f"likeliest tokens beside each, 0 to {MAX_TOP_LOGPROBS}; others are clamped")
]


class StreamOptions(msgspec.Struct):
    """Options of a streamed answer."""

    include_usage: bool | None = None


class PromptTokensDetails(msgspec.Struct):
    """Where the prompt's tokens came from."""

    cached_tokens: int


class Usage(msgspec.Struct):
    """Tokens read and written."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails


def n_choices(asked: int | None) -> int:
    """Return the number of choices that a request asks for, within what is allowed."""
    return 1 if asked is None else min(max(asked, 1), MAX_CHOICES)


def usage_of(answer: LiveAnswer) -> Usage:
    """Sum what an answer's generations read and wrote; a prompt counts once, however many choices it has."""
    prompt_tokens = sum(generation.prompt_tokens for generation in answer.prompts)
    cached_tokens = sum(generation.cached_tokens for generation in answer.prompts)
    completion_tokens = sum(generation.completion_tokens for generation in answer.generations)
    total_tokens = prompt_tokens + completion_tokens
    return Usage(prompt_tokens, completion_tokens, total_tokens, PromptTokensDetails(cached_tokens))


def new_id(prefix: str) -> str:
    """Return a fresh identifier of an answer, e.g. `chatcmpl-…`."""
    return f"{prefix}{uuid.uuid4().hex}"
