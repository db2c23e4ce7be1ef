"""SentencePiece BPE (Llama 2, Mistral, Gemma) with the vocabulary of a GGUF file: pieces with scores, byte fallback."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any

from modelc.text.byte_alphabet import utf8
from modelc.text.score_merges import ScoreMerges
from modelc.text.space_cuts import MARK, space_cuts
from modelc.text.vocabulary import TokenType, Vocabulary
from modelc.text.vocabulary_tokenizer import VocabularyTokenizer

CACHED_WORDS = 1 << 15
MAX_CACHED_CHARS = 64

_DEFAULT_IDS = {"unknown": 0, "bos": 1, "eos": 2}


class SentencePieceTokenizer(VocabularyTokenizer):
    """SentencePiece BPE: spaces are written as `▁`, characters that are no token as their bytes.

    Args:
        vocabulary: Tokens, scores and special ids.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary, add_bos=True)
        self._add_space = vocabulary.add_space_prefix is not False
        byte_tokens = [token for token, kind in enumerate(vocabulary.types) if kind == TokenType.BYTE]
        self._ids_of_bytes = {self.token_bytes(token): token for token in byte_tokens}
        self._pieces = dict(self._ordinary)
        for token in byte_tokens:
            self._pieces.pop(vocabulary.tokens[token], None)
        self._merges = ScoreMerges(self._pieces, vocabulary.scores)
        self._cuts = space_cuts(self._pieces)
        self._unknown = () if vocabulary.unknown_id is None else (vocabulary.unknown_id,)
        self._cached_ids = lru_cache(CACHED_WORDS)(self._ids)

    @classmethod
    def from_gguf(cls, metadata: Mapping[str, Any]) -> SentencePieceTokenizer:
        """Build from GGUF keys (`tokenizer.ggml.tokens`, `.scores`, `.token_type`, `.add_space_prefix`, …).

        Args:
            metadata: GGUF keys and their values, arrays as lists.

        Raises:
            BadFileError: The tokenizer's keys are incomplete or contradict each other.
        """
        return cls(Vocabulary.from_gguf(metadata, needs="scores", default_ids=_DEFAULT_IDS))

    def first_token_bytes(self, token: int) -> bytes:
        """Bytes of a token that begins a text, without the space that `encode` puts there."""
        data = self.token_bytes(token)
        return data.removeprefix(b" ") if self._add_space and token not in self.special_ids else data

    def _longest_token_bytes(self) -> int | None:
        covers_all = self._unknown or len(self._ids_of_bytes) == 256
        # A `▁` in the text counts as a space, and an unknown character has up to 4 bytes.
        return max(4, *(len(utf8(text)) for text in self.vocabulary.tokens)) if covers_all else None

    def _spelled_bytes(self, text: str) -> bytes:
        return utf8(text.replace(MARK, " "))

    def _piece_ids(self, text: str, after_special: bool) -> Iterable[int]:
        if self._add_space and after_special:
            text = f" {text}"
        text = text.replace(" ", MARK)
        words = [text] if self._cuts is None else self._cuts.findall(text)
        if max(map(len, words), default=0) <= MAX_CACHED_CHARS:
            return chain.from_iterable(map(self._cached_ids, words))
        return chain.from_iterable(
            self._cached_ids(word) if len(word) <= MAX_CACHED_CHARS else self._ids(word) for word in words
        )

    def _ids(self, word: str) -> tuple[int, ...]:
        ids: list[int] = []
        for piece in self._merges.apply(word):
            token = self._pieces.get(piece)
            if token is None:
                ids += self._byte_ids(piece)
            else:
                ids.append(token)
        return tuple(ids)

    def _byte_ids(self, char: str) -> Iterable[int]:
        found = [self._ids_of_bytes.get(bytes([byte])) for byte in char.encode("utf-8")]
        ids = [token for token in found if token is not None]
        return ids if len(ids) == len(found) else self._unknown
