"""What a model writes before an answer that is constrained: its reasoning, free text between two marks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from modelc.constraints.vocabulary import TokenTable

Words = npt.NDArray[np.int32]


class Mark:
    """A text that begins or ends reasoning, in a model's tokens: one of its own, or several that spell it.

    Attributes:
        text: its bytes.
        free: int32 words, a bit for each token that may come where nothing of the mark has.

    Args:
        table: the model's tokens.
        text: the mark.
    """

    def __init__(self, table: TokenTable, text: str) -> None:
        self.text = text.encode()
        self._table = table
        token = table.token_of(text)
        self._alone = [] if token is None else [token]
        self._with_words: dict[int, list[int]] = {}  # by how many bytes of the mark's end they begin with
        self._with_space: dict[int, list[int]] = {}
        for token, rest, n in table.beyond(self.text):
            (self._with_words if rest.strip() else self._with_space).setdefault(n, []).append(token)
        outrunning = self._with_words.pop(len(self.text), [])
        self.free = table.ordinary & ~table.bits(outrunning) | table.bits(self._alone)

    def begun(self, text: bytes) -> int:
        """How many bytes of the mark `text` ends with; not the whole of it."""
        lengths = range(min(len(text), len(self.text) - 1), 0, -1)
        return next((n for n in lengths if text.endswith(self.text[:n])), 0)

    def going_on(self, n_begun: int) -> Words:
        """Bits of the tokens that go on behind its first bytes, with nothing else but white space behind its end."""
        if self._alone and not n_begun:
            return self._table.bits(self._alone)
        left = self.text[n_begun:]
        spelling = [self._table.token_spelling(left[:n]) for n in range(1, len(left))]
        completing = self._with_space.get(len(left), [])
        return self._table.bits([token for token in spelling if token is not None] + completing)

    def unless_outrun(self, tail: bytes) -> Words:
        """`free` without the tokens that complete the mark behind `tail` and go on with words."""
        if not self.begun(tail):
            return self.free
        ends = [n for n in self._with_words if tail.endswith(self.text[: len(self.text) - n])]
        return self.free & ~self._table.bits([token for n in ends for token in self._with_words[n]])


class Reasoning:
    """Follows one answer up to where its constrained part begins: what opens the reasoning, the reasoning, white space.

    Args:
        table: the model's tokens.
        opener: begins it, where it comes; None where it is open from the first token on.
        closer: ends it.
    """

    def __init__(self, table: TokenTable, opener: Mark | None, closer: Mark) -> None:
        self._table = table
        self._opener = opener
        self._closer = closer
        self._tail = b""  # the last bytes, as far as they belong to the mark that is awaited
        self._stage: Literal["before", "inside", "behind"] = "before" if opener else "inside"

    @property
    def is_exclusive(self) -> bool:
        """Whether the constrained part cannot begin with the next token."""
        return self._stage == "inside" or bool(self._tail)

    @property
    def mask(self) -> Words:
        """int32 words, bits of the tokens that may come; where it is not exclusive, beside the constrained part's."""
        if self._stage == "behind":
            return self._table.blank
        if self._stage == "before" and self._opener is not None:
            return self._opener.going_on(len(self._tail))
        return self._closer.unless_outrun(self._tail)

    def advance(self, token: int) -> bool:
        """Go on behind `token`, one of the mask's; whether nothing but the constrained part may follow."""
        if self._stage == "behind":
            return True
        self._tail += self._table.text_of(token)
        if self._stage == "before" and self._opener is not None:
            if self._tail.startswith(self._opener.text):
                self._stage, self._tail = "inside", b""
        elif self._closer.text in self._tail:
            self._stage, self._tail = "behind", b""
        else:
            self._tail = self._tail[len(self._tail) - self._closer.begun(self._tail) :]
        return False
