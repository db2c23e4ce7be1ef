"""Where a model's files keep its chat template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DEFAULT_NAME = "default"


def chat_template_of(metadata: Mapping[str, Any]) -> str | None:
    """The Jinja2 source of a model's chat template; None when it has none.

    Args:
        metadata: The model's keys as its files have them: `chat_template` (a file of its own),
            `tokenizer.chat_template` (GGUF), or `chat_template` inside `tokenizer_config`. Each is one text, or several
            with names, of which "default" is taken, or else the first.
    """
    config = metadata.get("tokenizer_config")
    places = (
        metadata.get("chat_template"),
        metadata.get("tokenizer.chat_template"),
        config.get("chat_template") if isinstance(config, Mapping) else None,
    )
    return next((source for place in places if (source := _one(place))), None)


def _one(place: object) -> str | None:
    if isinstance(place, str):
        return place
    if isinstance(place, list):
        place = {entry.get("name"): entry.get("template") for entry in place if isinstance(entry, Mapping)}
    if not isinstance(place, Mapping):
        return None
    texts = {name: text for name, text in place.items() if isinstance(text, str)}
    return texts.get(DEFAULT_NAME, next(iter(texts.values()), None))
