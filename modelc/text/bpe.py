"""Byte-level BPE (GPT-2, 2019) with the vocabulary of a GGUF file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any

from modelc.text.byte_alphabet import BYTE_CHARS, bytes_to_chars, chars_to_bytes, utf8
from modelc.text.merges import Merges
from modelc.text.pre_tokenizers import find_pre_tokenizer
from modelc.text.special_tokens import SpecialTokens
from modelc.text.vocabulary import TokenType, Vocabulary

CACHED_WORDS = 1 << 15
MAX_CACHED_CHARS = 64

_SPECIAL = frozenset({TokenType.CONTROL, TokenType.UNKNOWN})
# Never made from ordinary text, even where merges or a whole word would give the token's text.
_NEVER_ORDINARY = _SPECIAL | {TokenType.UNUSED}
_BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")


class BpeTokenizer:
    """Text to token ids and back; safe to share between threads.

    Args:
        vocabulary: Tokens, merges and special ids.

    Attributes:
        vocabulary: As given.
        vocab_size: Number of tokens.
        bos_id: Beginning of text, or None.
        eos_id: End of text, or None.
        pad_id: Padding, or None.
        eog_ids: Every token that ends a generation.
        special_ids: Control tokens: recognised in text on request only.
        add_bos: `encode` puts BOS in front.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.vocab_size = len(vocabulary.tokens)
        self.bos_id, self.eos_id, self.pad_id = vocabulary.bos_id, vocabulary.eos_id, vocabulary.pad_id
        self.eog_ids = vocabulary.eog_ids
        self._split_words = find_pre_tokenizer(vocabulary.pre)
        add_bos = self._split_words.add_bos if vocabulary.add_bos is None else vocabulary.add_bos
        self.add_bos = add_bos and self.bos_id is not None

        by_type: dict[int, dict[str, int]] = {kind: {} for kind in {*TokenType, *vocabulary.types}}
        for token, (text, kind) in enumerate(zip(vocabulary.tokens, vocabulary.types, strict=True)):
            by_type[kind].setdefault(text, token)
        self.special_ids = frozenset(token for token, kind in enumerate(vocabulary.types) if kind in _SPECIAL)
        user_defined = by_type[TokenType.USER_DEFINED]
        self._user_defined = SpecialTokens(user_defined)
        self._all_special = SpecialTokens({**by_type[TokenType.UNKNOWN], **by_type[TokenType.CONTROL], **user_defined})
        self._ordinary: dict[str, int] = {}
        for kind, ids in by_type.items():
            if kind not in _NEVER_ORDINARY:
                self._ordinary |= ids
        self._merges = Merges(self._ordinary, self.vocab_size, vocabulary.merges)
        self._byte_symbols = [self._merges.symbol(char) for char in BYTE_CHARS]
        self._cached_word_ids = lru_cache(CACHED_WORDS)(self._word_ids)
        self._token_bytes: list[bytes | None] = [None] * self.vocab_size

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

    @classmethod
    def byte_fallback(cls) -> BpeTokenizer:
        """256 tokens, the byte values, for a model that has no tokenizer."""
        return cls(Vocabulary(list(BYTE_CHARS), [TokenType.NORMAL] * 256, [], pre="gpt-2"))

    @property
    def bos_token(self) -> str:
        """Text of BOS, empty when there is none."""
        return "" if self.bos_id is None else self.vocabulary.tokens[self.bos_id]

    @property
    def eos_token(self) -> str:
        """Text of EOS, empty when there is none."""
        return "" if self.eos_id is None else self.vocabulary.tokens[self.eos_id]

    def encode(self, text: str, add_special: bool = True, parse_special: bool = False) -> list[int]:
        """Token ids of `text`.

        Args:
            text: Any text; a lone surrogate counts as U+FFFD.
            add_special: Add BOS and EOS where the model's metadata ask for them.
            parse_special: Recognise control tokens written in the text. User-defined tokens always are.
        """
        ids: list[int] = []
        if add_special and self.add_bos and self.bos_id is not None:
            ids.append(self.bos_id)
        special = self._all_special if parse_special else self._user_defined
        for piece in special.split(_without_surrogates(text)):
            if isinstance(piece, int):
                ids.append(piece)
            else:
                ids.extend(self._ordinary_ids(piece))
        if add_special and self.vocabulary.add_eos and self.eos_id is not None:
            ids.append(self.eos_id)
        return ids

    def decode(self, ids: Iterable[int], skip_special: bool = False) -> str:
        """Text of `ids`, with U+FFFD for what is not UTF-8 once all is joined.

        Args:
            ids: Token ids; those outside the vocabulary are skipped.
            skip_special: Leave control tokens out.
        """
        return self.decode_bytes(ids, skip_special).decode("utf-8", "replace")

    def decode_bytes(self, ids: Iterable[int], skip_special: bool = False) -> bytes:
        """Bytes of `ids`; see `decode`."""
        if skip_special:
            ids = (token for token in ids if token not in self.special_ids)
        return b"".join(map(self.token_bytes, ids))

    def token_bytes(self, token: int) -> bytes:
        """Bytes that one token stands for: its text for special tokens, none for an unused or unknown id."""
        if not 0 <= token < self.vocab_size:
            return b""
        known = self._token_bytes[token]
        if known is None:
            known = self._token_bytes[token] = self._read_token(token)
        return known

    def _read_token(self, token: int) -> bytes:
        text, kind = self.vocabulary.tokens[token], self.vocabulary.types[token]
        if kind == TokenType.UNUSED:
            return b""
        if kind in _SPECIAL or kind == TokenType.USER_DEFINED:
            return utf8(text)
        byte = _BYTE.fullmatch(text) if kind == TokenType.BYTE else None
        return bytes.fromhex(byte[1]) if byte else chars_to_bytes(text)

    def _ordinary_ids(self, text: str) -> Iterable[int]:
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


def _without_surrogates(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # Halves that belong together become their character, others U+FFFD.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
