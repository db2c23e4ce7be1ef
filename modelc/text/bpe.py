"""Byte-level BPE (GPT-2, 2019) with the vocabulary of a GGUF file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelc.text.byte_alphabet import BYTE_CHARS, bytes_to_chars, chars_to_bytes
from modelc.text.merges import Merges
from modelc.text.pre_tokenizers import find_pre_tokenizer
from modelc.text.vocabulary import TokenType, Vocabulary
from modelc.text.vocabulary_tokenizer import VocabularyTokenizer

if TYPE_CHECKING:
    from modelc.text.hf import HfTokenizer

CACHED_WORDS = 1 << 15
MAX_CACHED_CHARS = 64


class BpeTokenizer(VocabularyTokenizer):
    """Byte-level BPE.

    Args:
        vocabulary: Tokens, merges and special ids.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._split_words = find_pre_tokenizer(vocabulary.pre)
        super().__init__(vocabulary, add_bos=self._split_words.add_bos)
        self._merges = Merges(self._ordinary, self.vocab_size, vocabulary.merges)
        self._byte_symbols = [self._merges.symbol(char) for char in BYTE_CHARS]
        self._lost_bytes = bytes(byte for byte, char in enumerate(BYTE_CHARS) if char not in self._ordinary)
        self._cached_word_ids = lru_cache(CACHED_WORDS)(self._word_ids)

    @classmethod
    def from_gguf(cls, metadata: Mapping[str, Any]) -> BpeTokenizer:
        """Build from GGUF keys (`tokenizer.ggml.tokens`, `.merges`, `.token_type`, `.pre`, …).

        Args:
            metadata: GGUF keys and their values, arrays as lists.

        Raises:
            BadFileError: The tokenizer's keys are incomplete or contradict each other.
            UnsupportedError: The file names a pre-tokenizer that is not byte-level.
        """
        return cls(Vocabulary.from_gguf(metadata))

    @staticmethod
    def from_hf(source: str | Path | Mapping[str, Any]) -> HfTokenizer:
        """Build from a `tokenizer.json`, the folder it is in (other files there are read too), or its parsed content.

        Raises:
            NotFoundError: There is no such file.
            BadFileError: It is not JSON, or a field is missing or wrong.
            UnsupportedError: It has a part of a type that modelc does not have; the error names it.
        """
        from modelc.text.hf import HfTokenizer

        return HfTokenizer.from_file(source)

    @classmethod
    def byte_fallback(cls) -> BpeTokenizer:
        """256 tokens, the byte values, for a model that has no tokenizer."""
        return cls(Vocabulary(list(BYTE_CHARS), [TokenType.NORMAL] * 256, [], pre="gpt-2"))

    def _longest_token_bytes(self) -> int | None:
        return max(len(self.token_bytes(token)) for token in range(self.vocab_size))

    def _spelled_bytes(self, text: str) -> bytes:
        return chars_to_bytes(text)

    def _piece_ids(self, text: str, after_special: bool) -> Iterable[int]:
        words = self._split_words.split(text)
        # Keys of the cache stay small: long words are rare, and a cache of them could fill the memory.
        if max(map(len, words), default=0) <= MAX_CACHED_CHARS:
            return chain.from_iterable(map(self._cached_word_ids, words))
        return chain.from_iterable(
            self._cached_word_ids(word) if len(word) <= MAX_CACHED_CHARS else self._word_ids(word) for word in words
        )

    def _word_ids(self, word: str) -> tuple[int, ...]:
        data = word.encode("utf-8")
        if self._split_words.whole_words:
            token = self._ordinary.get(bytes_to_chars(data))
            if token is not None:
                return (token,)
        byte_symbols = self._byte_symbols
        symbols = self._merges.apply([byte_symbols[byte] for byte in data])
        if max(symbols) < self.vocab_size:
            return tuple(symbols)
        return tuple(chain.from_iterable(map(self._tokens_of, symbols)))

    def _tokens_of(self, symbol: int) -> Iterable[int]:
        """The token, or the tokens of its bytes where merging stopped at a text that is none."""
        if symbol < self.vocab_size:
            return (symbol,)
        chars = self._merges.text(symbol)
        return [self._ordinary[char] for char in chars if char in self._ordinary]
