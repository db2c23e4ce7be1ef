"""Text of a generation, a token at a time, without ever splitting a character."""

from __future__ import annotations

import codecs

from modelc.text.tokenizer import Tokenizer


class StreamDecoder:
    """Decodes tokens as they come; the texts joined are `tokenizer.decode` of all of them.

    Args:
        tokenizer: Gives the bytes of each token.
        skip_special: Leave control tokens out.
        shown: Control tokens that are not left out in any case.
        at_start: The tokens begin a text; False when they go on one, so that a leading space belongs to them.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        skip_special: bool = False,
        at_start: bool = True,
        shown: frozenset[int] = frozenset(),
    ) -> None:
        self._tokenizer = tokenizer
        self._begins = self._at_start = at_start
        self._skipped = tokenizer.special_ids - shown if skip_special else frozenset[int]()
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """Add a token; returns the characters that are now complete (none, or several)."""
        if token in self._skipped:
            return ""
        if self._at_start and 0 <= token < self._tokenizer.vocab_size:
            self._at_start = False
            return self._utf8.decode(self._tokenizer.first_token_bytes(token))
        return self._utf8.decode(self._tokenizer.token_bytes(token))

    def flush(self) -> str:
        """End the text; returns U+FFFD for a character that was begun and not finished, and starts anew."""
        rest = self._utf8.decode(b"", final=True)
        self._utf8.reset()
        self._at_start = self._begins
        return rest
