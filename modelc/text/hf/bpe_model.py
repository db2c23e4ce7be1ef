"""The BPE model of a `tokenizer.json`: over bytes (GPT-2, Llama 3), or characters with byte fallback (Llama 2)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import chain

from modelc.text.hf.part import Part
from modelc.text.hf.splitters import Words
from modelc.text.merges import Merges
from modelc.text.space_cuts import MARK, space_cuts

CACHED_WORDS = 1 << 15
MAX_CACHED_CHARS = 64


class BpeModel:
    """Words to token ids.

    Args:
        part: The `model` object.
        vocab: Id of each token.
        hidden: Ids that merging never gives.
        words: How words are made, and spelled in the vocabulary.

    Raises:
        BadFileError: A field is missing or wrong.
    """

    def __init__(self, part: Part, vocab: Mapping[str, int], hidden: frozenset[int], words: Words) -> None:
        self._spell = words.spell
        self._prefix = part.text("continuing_subword_prefix", "")
        self._suffix = part.text("end_of_word_suffix", "")
        self._whole_words = part.flag("ignore_merges", False)
        self._fuses = part.flag("fuse_unk", False)
        self._unknown_id = vocab.get(part.text("unk_token")) if part.has("unk_token") else None
        self._vocab = {text: token for text, token in vocab.items() if token not in hidden} if hidden else vocab
        self._n_tokens = max(vocab.values(), default=-1) + 1
        self._byte_ids = byte_ids(vocab) if part.flag("byte_fallback", False) else None
        merges = _merges(part)
        self._merges = Merges(self._vocab, self._n_tokens, merges, len(self._prefix))
        cuttable = not words.byte_level and not self._whole_words and not self._suffix and MARK in self._vocab
        self._cuts = space_cuts(map("".join, merges)) if cuttable else None
        self._cached = lru_cache(CACHED_WORDS)(self._ids)

    def encode(self, word: str) -> tuple[int, ...]:
        """Ids of one word."""
        if len(word) <= MAX_CACHED_CHARS:
            return self._cached(word)
        if self._cuts is None:
            return self._ids(word)
        pieces = self._cuts.findall(word)
        return tuple(
            chain.from_iterable(
                self._cached(piece) if len(piece) <= MAX_CACHED_CHARS else self._ids(piece) for piece in pieces
            )
        )

    def _ids(self, word: str) -> tuple[int, ...]:
        word = self._spell(word)
        if self._whole_words and (token := self._vocab.get(word)) is not None:
            return (token,)
        symbols = self._merges.apply(self._symbols(word))
        if max(symbols, default=0) < self._n_tokens:
            return tuple(symbols)
        return tuple(chain.from_iterable(map(self._tokens_of, symbols)))

    def _symbols(self, word: str) -> list[int]:
        symbols: list[int] = []
        vocab = self._vocab
        last = len(word) - 1
        unknown = False
        for at, char in enumerate(word):
            text = (self._prefix if at else "") + char + (self._suffix if at == last else "")
            token = vocab.get(text)
            if token is not None:
                symbols.append(token)
            elif self._byte_ids is not None:
                symbols += [self._byte_ids[byte] for byte in text.encode("utf-8")]
            elif self._unknown_id is not None and not (unknown and self._fuses):
                symbols.append(self._unknown_id)
            unknown = token is None
        return symbols

    def _tokens_of(self, symbol: int) -> list[int]:
        """The token, or the tokens of its characters where merging stopped at a text that is none."""
        if symbol < self._n_tokens:
            return [symbol]
        return [self._vocab[char] for char in self._merges.text(symbol) if char in self._vocab]


def byte_ids(vocab: Mapping[str, int]) -> list[int] | None:
    """Ids of the tokens `<0x00>` to `<0xFF>`; None unless all are there."""
    found = [vocab.get(f"<0x{byte:02X}>") for byte in range(256)]
    ids = [token for token in found if token is not None]
    return ids if len(ids) == 256 else None


def _merges(part: Part) -> list[tuple[str, str]]:
    merges: list[tuple[str, str]] = []
    for merge in part.items("merges"):
        pair = merge.split(" ", 1) if isinstance(merge, str) else merge
        if type(pair) is not list or len(pair) != 2 or type(pair[0]) is not str or type(pair[1]) is not str:
            raise part.wrong("merges", "pairs of texts")
        merges.append((pair[0], pair[1]))
    return merges
