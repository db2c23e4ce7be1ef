"""Speculative decoding: tokens are proposed cheaply, and checked by the model in one pass.

The sampler draws each token from the model's own logits, as without speculation; a proposal only decides whether the
next row's logits are there already. So the answer is the same, bit for bit, whatever is proposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

NGRAMS = (3, 2)  # lengths of the endings that are looked up, longest first
SMOOTHING = 0.2  # weight of the newest verification in the running acceptance


class Proposer(Protocol):
    """Guesses how a sequence goes on."""

    def propose(self, tokens: Sequence[int], n: int) -> list[int]:
        """At most n tokens that may follow `tokens`."""

    def forget(self) -> None:
        """The sequence's tokens were moved: what was remembered of their places is wrong."""


class PromptLookup:
    """Proposes what followed the last occurrence of the sequence's ending. Source: prompt lookup decoding."""

    def __init__(self) -> None:
        self._follows: dict[tuple[int, ...], int] = {}  # n-gram -> where its continuation begins, the last one known
        self._indexed = 0

    def propose(self, tokens: Sequence[int], n: int) -> list[int]:
        """At most n tokens that followed an earlier occurrence of the ending of `tokens`."""
        for end in range(max(self._indexed, min(NGRAMS)), len(tokens)):
            for length in NGRAMS:
                if length <= end:
                    self._follows[tuple(tokens[end - length : end])] = end
        self._indexed = len(tokens)
        for length in NGRAMS:
            at = self._follows.get(tuple(tokens[-length:]))
            if at is not None and len(tokens) > length:
                return list(tokens[at : at + n])
        return []

    def forget(self) -> None:
        """Start anew: the tokens were moved."""
        self._follows.clear()
        self._indexed = 0


class Speculator:
    """A request's proposals, as many as its luck so far is worth.

    Attributes:
        proposed: tokens proposed so far.
        accepted: those that the model agreed with.

    Args:
        proposer: where they come from.
        gamma: most tokens in one pass.
    """

    def __init__(self, proposer: Proposer, gamma: int) -> None:
        self.proposed = 0
        self.accepted = 0
        self._proposer = proposer
        self._gamma = gamma
        self._luck = 1.0  # running share of accepted tokens

    def propose(self, tokens: Sequence[int], most: int) -> list[int]:
        """Tokens to check in the next pass, at most `most`; none while they would rarely be right."""
        worth = round(self._gamma * self._luck)
        n = min(max(worth, 1), self._gamma, most)
        return self._proposer.propose(tokens, n) if n > 0 else []

    def note(self, proposed: int, accepted: int) -> None:
        """Tell how a verification went."""
        if proposed:
            self.proposed += proposed
            self.accepted += accepted
            self._luck += SMOOTHING * (accepted / proposed - self._luck)

    def forget(self) -> None:
        """The sequence was shifted."""
        self._proposer.forget()
