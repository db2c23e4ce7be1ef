"""WordPiece (BERT, 2018): the longest token that begins the word, then the longest that goes on, to the end."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

CACHED_WORDS = 1 << 15
MAX_CACHED_CHARS = 64


class WordPiece:
    """Words to token ids.

    Args:
        beginnings: Id of each text that may begin a word.
        continuations: Id of each text that may go on a word, without its prefix.
        unknown_id: For a word that cannot be cut into tokens; None leaves it out.
        max_word_chars: A longer word is unknown.
    """

    def __init__(
        self,
        beginnings: Mapping[str, int],
        continuations: Mapping[str, int],
        unknown_id: int | None,
        max_word_chars: int = 100,
    ) -> None:
        self._beginnings = beginnings
        self._continuations = continuations
        self._unknown = () if unknown_id is None else (unknown_id,)
        self._max_word_chars = max_word_chars
        self._longest_beginning = max(map(len, beginnings), default=0)
        self._longest_continuation = max(map(len, continuations), default=0)
        self._cached = lru_cache(CACHED_WORDS)(self._greedy)

    def encode(self, word: str) -> tuple[int, ...]:
        """Ids of one word."""
        if len(word) > self._max_word_chars:
            return self._unknown
        return self._cached(word) if len(word) <= MAX_CACHED_CHARS else self._greedy(word)

    def _greedy(self, word: str) -> tuple[int, ...]:
        ids: list[int] = []
        at, tokens, longest = 0, self._beginnings, self._longest_beginning
        while at < len(word):
            for end in range(min(len(word), at + longest), at, -1):
                token = tokens.get(word[at:end])
                if token is not None:
                    break
            else:
                return self._unknown
            ids.append(token)
            at, tokens, longest = end, self._continuations, self._longest_continuation
        return tuple(ids)
