"""SentencePiece unigram (T5, XLM-R) with the vocabulary of a GGUF file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from modelc.errors import BadFileError
from modelc.text.byte_alphabet import utf8
from modelc.text.charsmap import Charsmap
from modelc.text.space_cuts import MARK, space_cuts
from modelc.text.unigram import Unigram
from modelc.text.vocabulary import TokenType, Vocabulary
from modelc.text.vocabulary_tokenizer import VocabularyTokenizer

_DEFAULT_IDS = {"unknown": 2, "eos": 1, "padding": 0}
_SPACES = re.compile(" {2,}")
_MAP = "tokenizer.ggml.precompiled_charsmap"
_REMOVE_SPACES = "tokenizer.ggml.remove_extra_whitespaces"


class UnigramTokenizer(VocabularyTokenizer):
    """SentencePiece unigram.

    Args:
        vocabulary: Tokens, scores and special ids.
        charsmap: Brings text into normal form.
        remove_spaces: Runs of spaces count as one, those at the ends not at all.
    """

    def __init__(self, vocabulary: Vocabulary, charsmap: Charsmap, remove_spaces: bool) -> None:
        super().__init__(vocabulary, add_eos=True)
        self._charsmap = charsmap
        self._remove_spaces = remove_spaces
        self._add_space = vocabulary.add_space_prefix is not False
        byte_tokens = {token for token, kind in enumerate(vocabulary.types) if kind == TokenType.BYTE}
        pieces = {text: token for text, token in self._ordinary.items() if token not in byte_tokens and text}
        self._cuts = space_cuts(pieces)
        self._model = Unigram(pieces, vocabulary.scores, vocabulary.unknown_id)

    @classmethod
    def from_gguf(cls, metadata: Mapping[str, Any]) -> UnigramTokenizer:
        """Build from GGUF keys (`tokenizer.ggml.tokens`, `.scores`, `.precompiled_charsmap`, …).

        Args:
            metadata: GGUF keys and their values, arrays as lists.

        Raises:
            BadFileError: The tokenizer's keys are incomplete or contradict each other.
        """
        vocabulary = Vocabulary.from_gguf(metadata, needs="scores", default_ids=_DEFAULT_IDS)
        remove_spaces = metadata.get(_REMOVE_SPACES, False)
        if type(remove_spaces) is not bool:
            raise BadFileError(f"{_REMOVE_SPACES} has the wrong type", expected="true or false")
        numbers = metadata.get(_MAP, [])
        if not isinstance(numbers, list) or set(map(type, numbers)) - {int}:
            raise BadFileError(f"{_MAP} has the wrong type", expected="a list of bytes")
        return cls(vocabulary, Charsmap(bytes(number & 0xFF for number in numbers), _MAP, longest=True), remove_spaces)

    def first_token_bytes(self, token: int) -> bytes:
        """Bytes of a token that begins a text, without the space that `encode` puts there."""
        data = self.token_bytes(token)
        return data.removeprefix(b" ") if self._add_space and token not in self.special_ids else data

    def _piece_ids(self, text: str, after_special: bool) -> Iterable[int]:
        text = self._charsmap(text)
        if self._remove_spaces:
            text = _SPACES.sub(" ", text.strip(" "))
        if self._add_space and after_special and text:
            text = f" {text}"
        text = text.replace(" ", MARK)
        words = [text] if self._cuts is None else self._cuts.findall(text)
        return chain.from_iterable(map(self._model.encode, words))

    def _spelled_bytes(self, text: str) -> bytes:
        return utf8(text.replace(MARK, " "))
