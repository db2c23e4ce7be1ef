"""Log-probabilities of tokens in the two forms that OpenAI's endpoints have for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, UnsetType

from modelc.sampling_ranges import MAX_TOP_LOGPROBS

if TYPE_CHECKING:
    from modelc.runtime import TokenLogprob
    from modelc.text import Tokenizer

LOWEST = -9999.0  # stands for minus infinity, which JSON does not have


class TopLogprob(msgspec.Struct):
    """One of the likeliest tokens in a place; `bytes` are its text's in UTF-8."""

    token: str
    logprob: float
    bytes: list[int]


class ContentLogprob(msgspec.Struct):
    """How likely a token was: the natural logarithm, before temperature and penalties; null for a prompt's first."""

    token: str
    logprob: float | None
    bytes: list[int]
    top_logprobs: list[TopLogprob]


class ContentLogprobs(msgspec.Struct, kw_only=True):
    """The tokens of an answer."""

    content: list[ContentLogprob]
    refusal: None = None


class TextLogprobs(msgspec.Struct):
    """The tokens of a text, one list entry each; the first one of a prompt has no probability.

    `text_offset` counts characters of the choice's text.
    """

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None] | None
    text_offset: list[int]


class CompletionLogprobs(msgspec.Struct, kw_only=True):
    """Of a completion: the lists of `TextLogprobs` where a number was asked for, `content` for `true`."""

    tokens: list[str] | UnsetType = UNSET
    token_logprobs: list[float | None] | UnsetType = UNSET
    top_logprobs: list[dict[str, float] | None] | UnsetType | None = UNSET
    text_offset: list[int] | UnsetType = UNSET
    content: list[ContentLogprob] | UnsetType = UNSET
    refusal: UnsetType | None = UNSET

    @classmethod
    def of(cls, logprobs: TextLogprobs | ContentLogprobs) -> CompletionLogprobs:
        """Return either form as what a completion has."""
        return cls(**msgspec.structs.asdict(logprobs))


def clamped(n: int) -> int:
    """So many tokens of those wanted beside each as there may be."""
    return min(max(n, 0), MAX_TOP_LOGPROBS)


def content_logprobs(tokenizer: Tokenizer, found: Iterable[TokenLogprob], first: int | None = None) -> ContentLogprobs:
    """Return the form of chats.

    Args:
        tokenizer: The model's.
        found: Tokens in order.
        first: A token before them, about which there is nothing to say.
    """
    content = [] if first is None else [_content(tokenizer, first, None, [])]
    for each in found:
        top = []
        for token, logprob in each.top:
            text, spelled = _token(tokenizer, token)
            top.append(TopLogprob(text, _finite(logprob), spelled))
        content.append(_content(tokenizer, each.token, _finite(each.logprob), top))
    return ContentLogprobs(content=content)


class TextLogprobsWriter:
    """Writes OpenAI's integer form, piece by piece: offsets go on from one piece to the next.

    Args:
        tokenizer: The model's.
        n_top: Tokens wanted beside each.
    """

    def __init__(self, tokenizer: Tokenizer, n_top: int) -> None:
        self._tokenizer = tokenizer
        self._n_top = n_top
        self._offset = 0

    def prompt(self, prompt_ids: Sequence[int], found: Sequence[TokenLogprob], text: str) -> TextLogprobs:
        """Return a prompt's piece.

        Args:
            prompt_ids: Its tokens.
            found: How likely those behind the first were.
            text: What they say; a BOS that it does not have takes no characters.
        """
        piece = TextLogprobs([], [], [] if self._n_top else None, [])
        hidden = text == "" or not text.startswith(self._tokenizer.bos_token or text)
        added = prompt_ids[0] == self._tokenizer.bos_id and hidden
        begins = 1 if added else 0  # the token whose leading space may not be part of the text
        for i, token in enumerate(prompt_ids):
            spelled = self._tokenizer.first_token_bytes if i == begins else self._tokenizer.token_bytes
            characters = 0 if added and i == 0 else _characters(spelled(token))
            each = found[i - 1] if 0 < i <= len(found) else None
            self._add(piece, token, characters, each.logprob if each else None, each.top if each else None)
        return piece

    def answer(self, found: Iterable[TokenLogprob]) -> TextLogprobs:
        """Return the piece of tokens that were generated; control tokens take no characters."""
        piece = TextLogprobs([], [], [] if self._n_top else None, [])
        for each in found:
            is_shown = each.token not in self._tokenizer.special_ids
            characters = _characters(self._tokenizer.token_bytes(each.token)) if is_shown else 0
            self._add(piece, each.token, characters, each.logprob, each.top)
        return piece

    def _add(
        self,
        piece: TextLogprobs,
        token: int,
        characters: int,
        logprob: float | None,
        top: Sequence[tuple[int, float]] | None,
    ) -> None:
        piece.tokens.append(_token(self._tokenizer, token)[0])
        piece.token_logprobs.append(None if logprob is None else _finite(logprob))
        piece.text_offset.append(self._offset)
        self._offset += characters
        if piece.top_logprobs is not None:
            piece.top_logprobs.append(None if top is None else self._by_text(top, token, logprob))

    def _by_text(self, top: Sequence[tuple[int, float]], token: int, logprob: float | None) -> dict[str, float]:
        by_text: dict[str, float] = {}
        for other, value in [*top, (token, logprob or 0.0)]:
            by_text.setdefault(_token(self._tokenizer, other)[0], _finite(value))  # of two with one text the likelier
        return by_text


def joined(pieces: Sequence[TextLogprobs]) -> TextLogprobs:
    """Return pieces of one choice as one."""
    has_top = all(piece.top_logprobs is not None for piece in pieces)
    return TextLogprobs(
        [token for piece in pieces for token in piece.tokens],
        [value for piece in pieces for value in piece.token_logprobs],
        [top for piece in pieces for top in piece.top_logprobs or []] if has_top else None,
        [offset for piece in pieces for offset in piece.text_offset],
    )


def _content(tokenizer: Tokenizer, token: int, logprob: float | None, top: list[TopLogprob]) -> ContentLogprob:
    text, spelled = _token(tokenizer, token)
    return ContentLogprob(text, logprob, spelled, top)


def _token(tokenizer: Tokenizer, token: int) -> tuple[str, list[int]]:
    spelled = tokenizer.token_bytes(token)
    try:
        return spelled.decode(), list(spelled)
    except UnicodeDecodeError:  # a part of a character, written as OpenAI does
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in spelled), list(spelled)


def _characters(spelled: bytes) -> int:
    """Characters that begin in these bytes."""
    return sum(byte & 0xC0 != 0x80 for byte in spelled)


def _finite(logprob: float) -> float:
    return max(logprob, LOWEST)
