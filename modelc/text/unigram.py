"""Unigram language model (Kudo 2018): of all ways to cut a word into tokens, the one with the best sum of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import inf

CACHED_WORDS = 1 << 15
MAX_CACHED_CHARS = 64
UNKNOWN_PENALTY = 10.0


class Unigram:
    """Words to token ids.

    Args:
        tokens: Id of each text that a word may be cut into.
        scores: Log-probability of each id.
        unknown_id: For characters that no token covers; None leaves them out.
        byte_ids: Ids of the 256 bytes that then stand for such characters instead; None for none.
    """

    def __init__(
        self,
        tokens: Mapping[str, int],
        scores: Sequence[float],
        unknown_id: int | None,
        byte_ids: Sequence[int] | None = None,
    ) -> None:
        self._tokens = tokens
        self._scores = scores
        self._unknown_id = unknown_id
        self._byte_ids = byte_ids
        self._unknown_score = min((scores[token] for token in tokens.values()), default=0.0) - UNKNOWN_PENALTY
        lengths: dict[str, set[int]] = {}
        for text in tokens:
            lengths.setdefault(text[:2], set()).add(len(text))
        # Only the lengths that tokens with the same first two characters have are tried.
        self._lengths = {start: sorted(found) for start, found in lengths.items()}
        self._cached = lru_cache(CACHED_WORDS)(self._best)

    def encode(self, word: str) -> tuple[int, ...]:
        """Ids of one word."""
        return self._cached(word) if len(word) <= MAX_CACHED_CHARS else self._best(word)

    def _best(self, word: str) -> tuple[int, ...]:
        n = len(word)
        best = [-inf] * (n + 1)
        best[0] = 0.0
        came = [0] * (n + 1)
        ids: list[int | None] = [None] * (n + 1)
        tokens, scores, lengths = self._tokens, self._scores, self._lengths
        for at in range(n):
            here = best[at]
            single = False
            pair = word[at : at + 2]
            for length in (*lengths.get(pair[0], ()), *(lengths.get(pair, ()) if len(pair) == 2 else ())):
                end = at + length
                token = tokens.get(word[at:end]) if end <= n else None
                if token is None:
                    continue
                single = single or length == 1
                score = here + scores[token]
                if score > best[end]:
                    best[end], came[end], ids[end] = score, at, token
            if not single and here + self._unknown_score > best[at + 1]:
                best[at + 1], came[at + 1], ids[at + 1] = here + self._unknown_score, at, None
        return self._backwards(word, came, ids)

    def _backwards(self, word: str, came: list[int], ids: list[int | None]) -> tuple[int, ...]:
        found: list[int] = []
        at = len(word)
        while at:
            token, before = ids[at], came[at]
            if token is None:
                # Neighbours that are unknown are one unknown.
                while before and ids[before] is None:
                    before = came[before]
                found += self._unknown(word[before:at])[::-1]
            else:
                found.append(token)
            at = before
        return tuple(found[::-1])

    def _unknown(self, text: str) -> list[int]:
        if self._byte_ids is not None:
            return [self._byte_ids[byte] for byte in text.encode("utf-8")]
        return [] if self._unknown_id is None else [self._unknown_id]
