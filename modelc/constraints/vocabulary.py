"""A model's tokens as the automaton library takes them: their bytes, and the canonical spelling of a text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from modelc.text import Tokenizer

if TYPE_CHECKING:
    from llguidance import LLTokenizer

_NEVER = b"\xff"  # bytes that no text has, for tokens that stand for none
_BREAK = "\n"  # tokenizers that put a space before a text do not put one behind this


class TokenTable:
    """The tokens that may be masked, in the library's form.

    Attributes:
        n_words: int32 words of a mask, one bit a token.
        spells: the library's object.
        ordinary: int32 (n_words,), a bit for each token that stands for text.
        blank: int32 (n_words,), a bit for each of those that is white space.
        ends: int32 (n_words,), a bit for each end-of-generation token.
        library_bytes: of the library's masks, which may be longer or shorter.

    Args:
        tokenizer: the model's.
        vocab_size: logits of the model; tokens beyond are never allowed.
    """

    def __init__(self, tokenizer: Tokenizer, vocab_size: int) -> None:
        import llguidance  # late: only requests with a constraint need it

        n = min(vocab_size, tokenizer.vocab_size)
        self.n_words = (vocab_size + 31) // 32
        end_ids = sorted(token for token in tokenizer.eog_ids if token < n)
        texts = [tokenizer.token_bytes(token) for token in range(n)]
        hidden = {token for token in range(n) if not texts[token]} | tokenizer.special_ids | set(end_ids)
        ordinary = [token for token in range(n) if token not in hidden]
        self.ordinary = _bits(self.n_words, ordinary)
        self.blank = _bits(self.n_words, [token for token in ordinary if texts[token].isspace()])
        self.ends = _bits(self.n_words, end_ids)
        if not end_ids:  # the library wants one: a token that the model does not have
            texts.append(b"")
            hidden.add(n)
            end_ids = [n]
        self._ids_of_bytes = {text: token for token, text in enumerate(texts) if token not in hidden}
        self._longest = max(map(len, self._ids_of_bytes), default=1)
        self._tokenizer = tokenizer
        # The names are the library's.
        self.eos_token_id = end_ids[0]
        self.bos_token_id = None
        self.tokens = [_NEVER + text if token in hidden else text for token, text in enumerate(texts)]
        self.special_token_ids = sorted(hidden)
        self.is_tokenizer_wrapper = True
        self.spells: LLTokenizer = llguidance.LLTokenizer(self, n_vocab=len(texts), eos_token=end_ids)  # type: ignore[arg-type]
        self.library_bytes = (self.spells.vocab_size + 31) // 32 * 4

    def __call__(self, text: str) -> list[int]:
        """The tokens in which the model would read `text`, or any that spell it exactly."""
        wanted = text.encode()
        for prefix in ("", _BREAK):
            ids = self._tokenizer.encode(prefix + text, add_special=False)
            if prefix and ids and self.tokens[ids[0]] == prefix.encode():
                del ids[0]
            if all(token < len(self.tokens) for token in ids) and b"".join(self.tokens[t] for t in ids) == wanted:
                return ids
        return self._longest_first(wanted)

    def token_of(self, text: str) -> int | None:
        """The token that `text` is by itself, control tokens among them; None where it takes several."""
        ids = self._tokenizer.encode(text, add_special=False, parse_special=True)
        return ids[0] if len(ids) == 1 and ids[0] < 32 * self.n_words else None

    def text_of(self, token: int) -> bytes:
        """The bytes that a token stands for; of a control token its name."""
        return self.tokens[token].removeprefix(_NEVER)

    def token_spelling(self, text: bytes) -> int | None:
        """A token that stands for exactly these bytes of text."""
        return self._ids_of_bytes.get(text)

    def beyond(self, mark: bytes) -> Iterator[tuple[int, bytes, int]]:
        """Tokens that complete a mark: the id, what follows in it, and how many bytes of the mark's end it has."""
        ends = tuple(mark[-n:] for n in range(1, len(mark)))
        for token, text in enumerate(self.tokens):
            if mark in text and not text.startswith(_NEVER):
                yield token, text.partition(mark)[2], len(mark)
            if text.startswith(ends):
                yield from ((token, text[len(end) :], len(end)) for end in ends if text.startswith(end))

    def bits(self, tokens: Sequence[int]) -> npt.NDArray[np.int32]:
        """int32 (n_words,), a bit for each of `tokens`."""
        return _bits(self.n_words, tokens)

    def _longest_first(self, text: bytes) -> list[int]:
        ids, at = [], 0
        while at < len(text):
            for length in range(min(self._longest, len(text) - at), 0, -1):
                token = self._ids_of_bytes.get(text[at : at + length])
                if token is not None:
                    ids.append(token)
                    break
            else:
                return []  # no tokens spell it
            at += length
        return ids


def _bits(n_words: int, tokens: Sequence[int]) -> npt.NDArray[np.int32]:
    flags = np.zeros(n_words * 32, np.uint8)
    flags[list(tokens)] = 1
    return np.packbits(flags, bitorder="little").view(np.int32)
