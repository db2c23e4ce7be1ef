"""Speculative decoding: tokens are proposed cheaply, and checked by the model in one pass.

The sampler draws each token from the model's own logits, as without speculation; a proposal only decides whether the
next row's logits are there already. So the answer is the same, bit for bit, whatever is proposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from modelc.runtime.step_costs import StepCosts

NGRAMS = (3, 2)  # lengths of the endings that are looked up, longest first
SMOOTHING = 0.1  # weight of the newest guess in the running share of right ones
WORTHWHILE = 1.05  # times as many tokens a second as without proposals
FIRST_LUCK = 0.7  # share of right guesses to begin with: some are tried, a few wrong ones end it


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
    """A request's proposals, as many as pay for the rows that check them.

    Each step is asked for a guess, checked or not, and the guess compared with what came: so the share of right ones is
    known also while nothing is proposed.

    Attributes:
        proposed: tokens proposed so far.
        accepted: those that the model agreed with.

    Args:
        proposer: where they come from.
        gamma: most tokens in one pass.
        costs: of the engine's steps.
    """

    def __init__(self, proposer: Proposer, gamma: int, costs: StepCosts) -> None:
        self.proposed = 0
        self.accepted = 0
        self._proposer = proposer
        self._gamma = gamma
        self._costs = costs
        self._luck = FIRST_LUCK  # running share of guessed tokens that were right
        self._guess: list[int] = []
        self._guessed_at = 0

    def propose(self, tokens: Sequence[int], most: int) -> list[int]:
        """Tokens to check in the next pass, at most `most`."""
        for guessed, token in zip(self._guess, tokens[self._guessed_at :], strict=False):
            self._luck += SMOOTHING * ((guessed == token) - self._luck)
            if guessed != token:
                break
        n = self._worth(min(self._gamma, most))
        self._guess, self._guessed_at = self._proposer.propose(tokens, max(n, 1)), len(tokens)
        return self._guess[:n]

    def _worth(self, most: int) -> int:
        """How many tokens make the most of a step: the expected length of its answer over its cost."""
        best, n = WORTHWHILE, 0
        expected = chance = 1.0
        for proposed in range(1, most + 1):
            chance *= self._luck
            expected += chance
            value = expected / self._costs.ratio(proposed)
            if value > best:
                best, n = value, proposed
        return n

    def note(self, proposed: int, accepted: int) -> None:
        """Tell how a verification went."""
        self.proposed += proposed
        self.accepted += accepted

    def forget(self) -> None:
        """The sequence was shifted."""
        self._guess = []
        self._proposer.forget()
