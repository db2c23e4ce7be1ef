"""A constraint at work: which tokens may come next, and which one must."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from modelc.constraints.reasoning import Reasoning
from modelc.constraints.vocabulary import TokenTable
from modelc.errors import BadInputError

if TYPE_CHECKING:
    from llguidance import LLMatcher

WORTH_A_THREAD_S = 60e-6  # a mask that takes longer is made while the model computes; handing it over costs 20 to 40 µs


class Automaton:
    """Follows one answer, a token at a time. Its state is a function of the answer's tokens alone.

    Attributes:
        forced: the tokens that must come next, first to last: the text has one way on, in the model's own spelling.
            Empty where there is a choice; then `mask` tells it.
        finished: the answer is complete and nothing can follow.

    Args:
        matcher: the library's, at the beginning of the language; owned from now on.
        table: the model's tokens.
        failure: makes the error for the library's message.
        later: where masks that take long are made; None makes all at once.
        reasoning: what may come before the language begins; None: nothing.
    """

    def __init__(
        self,
        matcher: LLMatcher,
        table: TokenTable,
        failure: Callable[[str], BadInputError],
        later: Executor | None = None,
        reasoning: Reasoning | None = None,
    ) -> None:
        self.forced: list[int] = []
        self.finished = False
        self._matcher = matcher
        self._table = table
        self._failure = failure
        self._later = later if table.ends.any() else None
        self._buffer = np.zeros(max(table.n_words, table.library_bytes // 4), np.int32)
        self._mask = self._buffer[: table.n_words]
        self._coming: Future[None] | None = None
        self._mask_s = 0.0  # what the last mask took
        self._reasoning = reasoning
        self._beginning = np.zeros_like(self._mask)  # with which tokens the language begins, while others may come
        self._begin()

    @property
    def mask(self) -> npt.NDArray[np.int32]:
        """int32 words, a bit for each token that may come next; changed by `advance`.

        End-of-generation tokens are among them exactly where the answer may end.

        Raises:
            BadInputError: the language has no way on from here, or it is too complex to find one.
        """
        self.wait()
        return self._mask

    @property
    def mask_address(self) -> int:
        """Where the words of `mask` are; they never move, and count after `wait`."""
        return self._mask.ctypes.data

    def wait(self) -> None:
        """Wait for the mask, if it is still being made.

        Raises:
            BadInputError: see `mask`.
        """
        if self._coming is not None:
            coming, self._coming = self._coming, None
            coming.result()

    def advance(self, token: int) -> None:
        """Go on behind `token`, which was allowed; one that ends the generation ends the answer.

        Raises:
            BadInputError: see `mask`.
        """
        if _has(self._table.ends, token):
            self.finished = True
            return
        if self._reasoning is not None and not _has(self._beginning, token):
            if self._reasoning.advance(token):
                self._reasoning = None
            self._begin()
            return
        self._reasoning = None
        self.wait()
        if not self._matcher.consume_token(token):
            raise self._failure(self._matcher.get_error())
        if self.forced:
            del self.forced[0]
        if not self.forced:
            self._look_ahead()

    def allowed(self, tokens: Sequence[int]) -> int:
        """How many of `tokens`, from the first on, may come next one after another."""
        if self._reasoning is not None:
            return next((i for i, token in enumerate(tokens) if not _has(self._table.ordinary, token)), len(tokens))
        if not tokens or not self.mask.any():
            return 0
        return self._matcher.validate_tokens(list(tokens))

    def _begin(self) -> None:
        reasoning = self._reasoning
        self._beginning[:] = 0
        if reasoning is not None and reasoning.is_exclusive:
            self._mask[:] = reasoning.mask
            return
        if reasoning is None:
            self._look_ahead()
        else:
            self._make_mask()
        self.finished = not self.forced and not (self.mask & self._table.ordinary).any()
        if reasoning is not None:
            self._beginning[:] = self._mask
            self._mask |= reasoning.mask

    def _look_ahead(self) -> None:
        self.forced = self._ordinary(self._matcher.compute_ff_tokens())
        if self.forced:
            return
        if self._matcher.is_stopped() and self._matcher.is_accepting():
            self._mask[:] = 0
            self.finished = True
        elif self._later is not None and self._mask_s > WORTH_A_THREAD_S:
            self._coming = self._later.submit(self._make_mask)
        else:
            self._make_mask()

    def _make_mask(self) -> None:
        matcher, table = self._matcher, self._table
        start = time.perf_counter()
        matcher.unsafe_compute_mask_ptr(self._buffer.ctypes.data, table.library_bytes)
        self._mask_s = time.perf_counter() - start
        if matcher.is_error():
            raise self._failure(matcher.get_error())
        self._mask &= table.ordinary
        is_accepting = matcher.is_accepting()
        if not self._mask.any():
            if not is_accepting:
                raise self._failure("nothing can follow")
            self.finished = not table.ends.any()  # else the model has to say so
        if is_accepting:
            self._mask |= table.ends

    def _ordinary(self, tokens: list[int]) -> list[int]:
        """`tokens` up to the first that is not text: such end the answer when the model says so."""
        for i, token in enumerate(tokens):
            if not _has(self._table.ordinary, token):
                return tokens[:i]
        return tokens


def _has(words: npt.NDArray[np.int32], token: int) -> bool:
    return token < 32 * len(words) and bool(words[token >> 5] >> (token & 31) & 1)
