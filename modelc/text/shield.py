"""Special tokens that people write in chats: marked before a template makes a prompt of them, kept as text there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from modelc.text.special_tokens import MAX_SPECIAL_CHARS, SpecialTokens

OPEN, CLOSE = "\ufdd0", "\ufdd1"  # Unicode keeps them out of all text that is exchanged
_MARKS = re.compile(f"[{OPEN}{CLOSE}]")
_MARKED = re.compile(f"{OPEN}([^{OPEN}{CLOSE}]{{1,{MAX_SPECIAL_CHARS}}}){CLOSE}")


def shield_messages(messages: Sequence[Mapping[str, Any]], special_texts: frozenset[str]) -> list[dict[str, Any]]:
    """Copies of `messages` in whose strings special tokens are marked, so that `encode_prompt` takes them as text.

    Args:
        messages: A conversation.
        special_texts: Texts of the tokenizer's control tokens.
    """
    tokens = _finder(special_texts)
    return [{key: _shielded(value, tokens) for key, value in message.items()} for message in messages]


def shielded_parts(prompt: str, special_texts: frozenset[str]) -> Iterator[tuple[str, bool]]:
    """The prompt in parts without marks; the flags: special tokens in the part are the template's own."""
    done = 0
    for marked in _MARKED.finditer(prompt):
        if marked[1] in special_texts:  # else a template took a marked text apart
            yield _MARKS.sub("", prompt[done : marked.start()]), True
            yield marked[1], False
            done = marked.end()
    yield _MARKS.sub("", prompt[done:]), True


@lru_cache(maxsize=8)
def _finder(special_texts: frozenset[str]) -> SpecialTokens:
    return SpecialTokens(dict.fromkeys(special_texts, 0))


def _shielded(value: Any, tokens: SpecialTokens) -> Any:
    if isinstance(value, Mapping):
        return {key: _shielded(item, tokens) for key, item in value.items()}
    if isinstance(value, list):
        return [_shielded(item, tokens) for item in value]
    if not isinstance(value, str):
        return value
    text = _MARKS.sub("", value)
    pieces, done = [], 0
    for at, _, length in tokens.find(text):
        end = at + length
        pieces += [text[done:at], OPEN, text[at:end], CLOSE]
        done = end
    return "".join([*pieces, text[done:]])
