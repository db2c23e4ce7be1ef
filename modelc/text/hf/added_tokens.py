"""Tokens that stand beside the model's vocabulary and are recognised in text before the model sees it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import regex

from modelc.text.hf.normalizers import Normalizer
from modelc.text.hf.part import Part
from modelc.text.special_tokens import SpecialTokens

MAX_TOKEN_ID = 1 << 24

_WORD_CHAR = regex.compile(r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]")
_SPACE = regex.compile(r"\p{White_Space}")
_SPACE_AFTER = regex.compile(r"\p{White_Space}*")


@dataclass(frozen=True, slots=True)
class AddedToken:
    """One token of `added_tokens`.

    Attributes:
        id: Its number.
        text: What is looked for.
        special: A control token: recognised on request only.
        single_word: Only where no word character touches it.
        lstrip: Takes the white space before it too.
        rstrip: Takes the white space after it too.
        normalized: Looked for in normalized text, itself normalized.
    """

    id: int
    text: str
    special: bool = False
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False


def added_tokens_of(root: Part) -> list[AddedToken]:
    """What `added_tokens` lists.

    Raises:
        BadFileError: A field is missing or wrong.
    """
    if not root.has("added_tokens"):
        return []
    tokens = []
    for part in root.parts("added_tokens"):
        number = part.number("id")
        if not 0 <= number < MAX_TOKEN_ID:
            raise part.wrong("id", f"0 to {MAX_TOKEN_ID - 1}")
        special = part.flag("special", False)
        tokens.append(
            AddedToken(
                number,
                part.text("content"),
                special,
                single_word=part.flag("single_word", False),
                lstrip=part.flag("lstrip", False),
                rstrip=part.flag("rstrip", False),
                normalized=part.flag("normalized", not special),
            )
        )
    return tokens


class AddedTokens:
    """Cuts text at added tokens.

    Args:
        tokens: Those to recognise.
        normalizer: Brings the text between tokens, and tokens that want it, into normal form.
    """

    def __init__(self, tokens: Iterable[AddedToken], normalizer: Normalizer | None) -> None:
        self._normalizer = normalizer
        self._by_id = {token.id: token for token in tokens}
        known = self._by_id.values()
        normal = normalizer or str
        self._in_source = SpecialTokens({token.text: token.id for token in known if not token.normalized})
        self._in_normal = SpecialTokens({normal(token.text): token.id for token in known if token.normalized})

    def split(self, text: str) -> Iterator[tuple[str | int, bool]]:
        """Pieces of `text`: ids, and normalized strings between them; the flag is true at the text's beginning."""
        first = True
        for piece in self._cut(text, self._in_source):
            if isinstance(piece, int):
                yield piece, first
            else:
                normal = self._normalizer(piece) if self._normalizer else piece
                for part in self._cut(normal, self._in_normal):
                    yield part, first
                    first = False
            first = False

    def _cut(self, text: str, tokens: SpecialTokens) -> Iterator[str | int]:
        done = 0
        for found, number, length in tokens.find(text):
            token = self._by_id[number]
            at, end = found, found + length
            if at < done:  # inside of white space that the token before has taken
                continue
            if token.single_word and ((at and _WORD_CHAR.match(text, at - 1)) or _WORD_CHAR.match(text, end)):
                continue
            if token.lstrip:
                while at > done and _SPACE.match(text, at - 1):
                    at -= 1
            if token.rstrip and (space := _SPACE_AFTER.match(text, end)):
                end = space.end()
            if at > done:
                yield text[done:at]
            yield number
            done = end
        if done < len(text):
            yield text[done:]
