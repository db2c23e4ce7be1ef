"""What tokenizers with a GGUF vocabulary have in common: special tokens, BOS and EOS, decoding."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cached_property

from modelc.text.byte_alphabet import utf8
from modelc.text.special_tokens import SpecialTokens
from modelc.text.surrogates import without_surrogates
from modelc.text.vocabulary import TokenType, Vocabulary

_SPECIAL = frozenset({TokenType.CONTROL, TokenType.UNKNOWN})
# Never made from ordinary text, even where merges or a whole word would give the token's text.
_NEVER_ORDINARY = _SPECIAL | {TokenType.UNUSED}
_BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")


class VocabularyTokenizer(ABC):
    """Text to token ids and back; safe to share between threads.

    Args:
        vocabulary: Tokens and special ids.
        add_bos: Whether text starts with BOS where the vocabulary does not say.
        add_eos: Whether text ends with EOS where the vocabulary does not say.

    Attributes:
        vocabulary: As given.
        vocab_size: Number of tokens.
        bos_id: Beginning of text, or None.
        eos_id: End of text, or None.
        pad_id: Padding, or None.
        eog_ids: Every token that ends a generation.
        special_ids: Control tokens: recognised in text on request only.
        add_bos: `encode` puts BOS in front.
        add_eos: `encode` puts EOS at the end.
    """

    def __init__(self, vocabulary: Vocabulary, add_bos: bool = False, add_eos: bool = False) -> None:
        self.vocabulary = vocabulary
        self.vocab_size = len(vocabulary.tokens)
        self.bos_id, self.eos_id, self.pad_id = vocabulary.bos_id, vocabulary.eos_id, vocabulary.pad_id
        self.eog_ids = vocabulary.eog_ids
        self.add_bos = (add_bos if vocabulary.add_bos is None else vocabulary.add_bos) and self.bos_id is not None
        self.add_eos = (add_eos if vocabulary.add_eos is None else vocabulary.add_eos) and self.eos_id is not None

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
        self._lost_bytes = b""  # those that no token has: text is encoded without them
        self._token_bytes: list[bytes | None] = [None] * self.vocab_size

    @cached_property
    def special_texts(self) -> frozenset[str]:
        """Texts of the control tokens."""
        return frozenset(self.vocabulary.tokens[token] for token in self.special_ids)

    @cached_property
    def longest_token_bytes(self) -> int | None:
        """Most bytes of text that one token can stand for; None where there is no bound."""
        return None if self.vocabulary.rstrip_ids else self._longest_token_bytes()

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
        ids += self.encode_parts([(text, parse_special)])
        if add_special and self.add_eos and self.eos_id is not None:
            ids.append(self.eos_id)
        return ids

    def encode_parts(self, parts: Iterable[tuple[str, bool]]) -> list[int]:
        """Token ids of one text in parts, without BOS and EOS; the flags: control tokens are recognised in the part."""
        ids: list[int] = []
        after_special, strips = True, False
        for text, parse_special in parts:
            special = self._all_special if parse_special else self._user_defined
            for piece in special.split(without_surrogates(text)):
                if isinstance(piece, int):
                    ids.append(piece)
                    after_special, strips = True, piece in self.vocabulary.rstrip_ids
                elif stripped := piece.lstrip() if strips else piece:
                    ids.extend(self._piece_ids(stripped, after_special))
                    after_special = strips = False
        return ids

    def least_tokens(self, text: str) -> int:
        """A number of tokens that `text` has at least, without encoding it; 0 where there is no bound."""
        longest = self.longest_token_bytes
        return len(utf8(text).translate(None, self._lost_bytes)) // longest if longest else 0

    def decode(self, ids: Iterable[int], skip_special: bool = False) -> str:
        """Text of `ids`, with U+FFFD for what is not UTF-8 once all is joined.

        Args:
            ids: Token ids; those outside the vocabulary are skipped.
            skip_special: Leave control tokens out.
        """
        return self.decode_bytes(ids, skip_special).decode("utf-8", "replace")

    def decode_bytes(self, ids: Iterable[int], skip_special: bool = False) -> bytes:
        """Bytes of `ids`; see `decode`."""
        skipped = self.special_ids if skip_special else frozenset[int]()
        known = [token for token in ids if 0 <= token < self.vocab_size and token not in skipped]
        return self.first_token_bytes(known[0]) + b"".join(map(self.token_bytes, known[1:])) if known else b""

    def token_bytes(self, token: int) -> bytes:
        """Bytes that one token stands for: its text for special tokens, none for an unused or unknown id."""
        if not 0 <= token < self.vocab_size:
            return b""
        known = self._token_bytes[token]
        if known is None:
            known = self._token_bytes[token] = self._read_token(token)
        return known

    def first_token_bytes(self, token: int) -> bytes:
        """Bytes of a token that begins a text."""
        return self.token_bytes(token)

    @abstractmethod
    def _piece_ids(self, text: str, after_special: bool) -> Iterable[int]:
        """Ids of text without special tokens; the flag: it begins the text or follows a special token."""

    @abstractmethod
    def _spelled_bytes(self, text: str) -> bytes:
        """Bytes of the text of an ordinary token."""

    def _longest_token_bytes(self) -> int | None:
        """See `longest_token_bytes`; None also where normalisation may shorten text, or text may be left out."""
        return None

    def _read_token(self, token: int) -> bytes:
        text, kind = self.vocabulary.tokens[token], self.vocabulary.types[token]
        if kind == TokenType.UNUSED:
            return b""
        if kind in _SPECIAL or kind == TokenType.USER_DEFINED:
            return utf8(text)
        byte = _BYTE.fullmatch(text) if kind == TokenType.BYTE else None
        return bytes.fromhex(byte[1]) if byte else self._spelled_bytes(text)
