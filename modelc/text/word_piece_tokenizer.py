"""WordPiece (BERT, 2018) with the vocabulary of a GGUF file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from modelc.errors import BadFileError
from modelc.text.byte_alphabet import utf8
from modelc.text.hf.normalizers import bert
from modelc.text.hf.splitters import bert_words
from modelc.text.space_cuts import MARK
from modelc.text.vocabulary import Vocabulary
from modelc.text.vocabulary_tokenizer import VocabularyTokenizer
from modelc.text.word_piece import WordPiece

_DEFAULT_IDS = {"unknown": 100, "bos": 101, "seperator": 102, "padding": 0}
_CONTINUES = "##"


class WordPieceTokenizer(VocabularyTokenizer):
    """WordPiece over lower-case words without accents.

    Tokens that begin a word are written with `▁` and others plainly; in early files others have `##`.

    Args:
        vocabulary: Tokens and special ids; BOS and EOS are put around each text.
        lowercase: Upper and lower case are the same, and accents do not count.
    """

    def __init__(self, vocabulary: Vocabulary, lowercase: bool = True) -> None:
        super().__init__(vocabulary, add_bos=True, add_eos=True)
        self._lowercase = lowercase
        mark = any(text.startswith(MARK) for text in self._ordinary)
        self._beginning, self._continuing = (MARK, "") if mark else ("", _CONTINUES)
        begins, goes_on = len(self._beginning), len(self._continuing)
        self._words = WordPiece(
            {text[begins:]: token for text, token in self._ordinary.items() if text.startswith(self._beginning)},
            {text[goes_on:]: token for text, token in self._ordinary.items() if text.startswith(self._continuing)},
            vocabulary.unknown_id,
        )

    @classmethod
    def from_gguf(cls, metadata: Mapping[str, Any]) -> WordPieceTokenizer:
        """Build from GGUF keys (`tokenizer.ggml.tokens`, `.cls_token_id`, `.seperator_token_id`, …).

        Args:
            metadata: GGUF keys and their values, arrays as lists.

        Raises:
            BadFileError: The tokenizer's keys are incomplete or contradict each other.
        """
        vocabulary = Vocabulary.from_gguf(metadata, needs="", default_ids=_DEFAULT_IDS)
        begin = vocabulary.bos_id if vocabulary.cls_id is None else vocabulary.cls_id
        end = vocabulary.eos_id if vocabulary.sep_id is None else vocabulary.sep_id
        lowercase = metadata.get("tokenizer.ggml.normalizer.lowercase", True)
        add_sep = metadata.get("tokenizer.ggml.add_sep_token", True)
        if type(lowercase) is not bool or type(add_sep) is not bool:
            raise BadFileError("a flag of tokenizer.ggml has the wrong type", expected="true or false")
        return cls(replace(vocabulary, bos_id=begin, eos_id=end, add_eos=add_sep), lowercase)

    def first_token_bytes(self, token: int) -> bytes:
        """Bytes of a token that begins a text, without the space between words."""
        return self.token_bytes(token).removeprefix(b" ")

    def _piece_ids(self, text: str, after_special: bool) -> Iterable[int]:
        text = bert(text, strip_accents=self._lowercase, lowercase=self._lowercase)
        return chain.from_iterable(map(self._words.encode, bert_words(text)))

    def _spelled_bytes(self, text: str) -> bytes:
        if self._continuing:
            continues = text.startswith(self._continuing)
            return utf8(text[len(self._continuing) :] if continues else f" {text}")
        return utf8(f" {text[1:]}" if text.startswith(MARK) else text)
