"""What the answers of OpenAI's text endpoints have in common."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import msgspec

from modelc.api.generation import LiveGeneration
from modelc.version import __version__

SYSTEM_FINGERPRINT = f"modelc-{__version__}"


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


def usage_of(generations: Sequence[LiveGeneration]) -> Usage:
    """Sum the usage of an answer's generations."""
    prompt_tokens = sum(generation.prompt_tokens for generation in generations)
    completion_tokens = sum(generation.completion_tokens for generation in generations)
    cached_tokens = sum(generation.cached_tokens for generation in generations)
    total_tokens = prompt_tokens + completion_tokens
    return Usage(prompt_tokens, completion_tokens, total_tokens, PromptTokensDetails(cached_tokens))


def new_id(prefix: str) -> str:
    """Return a fresh identifier of an answer, e.g. `chatcmpl-…`."""
    return f"{prefix}-{uuid.uuid4().hex}"
