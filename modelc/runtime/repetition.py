"""DRY: tokens that would go on with what the sequence already said, penalized by how long the repetition is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from modelc.kernels import env
from modelc.runtime.memory import allocate
from modelc.runtime.sampling import Sampling
from modelc.text import Tokenizer

if TYPE_CHECKING:
    from modelc.runtime.sampler import Compiled

MAX_PENALTY = 1e30  # finite in float32, and more than any logit


class RepetitionPenalty:
    """The penalties of one request, from its tokens so far.

    A token that follows an earlier occurrence of the sequence's last `length` tokens loses
    `multiplier * base ** (length - allowed_length)`. Repetitions end at sequence breakers, which are not penalized.

    Args:
        find: the compiled `repeats`.
        sampling: its `dry_*` fields.
        prompt: the prompt's tokens.
        tokenizer: for the tokens' bytes.
    """

    def __init__(self, find: Compiled, sampling: Sampling, prompt: Sequence[int], tokenizer: Tokenizer) -> None:
        self._find = find
        self._multiplier, self._base = sampling.dry_multiplier, sampling.dry_base
        self._allowed, self._last_n = sampling.dry_allowed_length, sampling.dry_penalty_last_n
        self._breakers = [text.encode("utf-8", "replace") for text in sampling.dry_sequence_breakers if text]
        self._overlap = max(map(len, self._breakers), default=1) - 1
        self._tokenizer = tokenizer
        self._tokens: list[int] = []
        self._since_breaker = 0
        self._ending = b""  # of the text: what a breaker that is not complete yet may begin with
        for token in prompt:
            self.note(token)

    def note(self, token: int) -> None:
        """Add a token to the sequence."""
        self._tokens.append(token)
        text = self._ending + self._tokenizer.token_bytes(token)
        self._since_breaker += 1
        if any(breaker in text for breaker in self._breakers):
            self._since_breaker, text = 0, b""
        self._ending = text[len(text) - self._overlap :] if len(text) > self._overlap else text

    def penalties(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Tokens, ascending, and what is added to their logits."""
        tokens = self._tokens if self._last_n < 0 else self._tokens[-self._last_n :]
        limit = min(self._since_breaker, len(tokens))
        longest: dict[int, int] = {}
        if self._last_n and limit >= self._allowed:
            for token, length in self._repeats(tokens, limit):
                if length > longest.get(token, -1):
                    longest[token] = length
        penalized = sorted(token for token in longest if not self._is_breaker(token))
        values = [-self._penalty(longest[token]) for token in penalized]
        return np.array(penalized, np.int64), np.array(values, np.float64)

    def _repeats(self, tokens: list[int], limit: int) -> list[tuple[int, int]]:
        n = len(tokens)
        sequence, lengths, found = np.array(tokens, np.int64), allocate(n, np.int64), allocate(n, np.int64)
        block = np.zeros(env.N_REPEATS, np.int64)
        block[env.REPEATS_TOKENS], block[env.REPEATS_N] = sequence.ctypes.data, n
        block[env.REPEATS_LENGTHS], block[env.REPEATS_FOUND] = lengths.ctypes.data, found.ctypes.data
        block[env.REPEATS_LIMIT], block[env.REPEATS_ALLOWED] = limit, self._allowed
        (count,) = self._find(block.ctypes.data)
        return [(tokens[n - k], int(lengths[k])) for k in found[:count].tolist()]

    def _is_breaker(self, token: int) -> bool:
        text = self._tokenizer.token_bytes(token)
        return any(breaker in text for breaker in self._breakers)

    def _penalty(self, length: int) -> float:
        """By repeated products: `**` is libm's, whose last bit differs between systems."""
        penalty = self._multiplier
        for _ in range(length - self._allowed):
            penalty *= self._base
            if penalty > MAX_PENALTY or self._base == 1.0:
                break
        return min(penalty, MAX_PENALTY)
