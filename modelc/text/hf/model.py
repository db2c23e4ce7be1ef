"""The model of a `tokenizer.json`: its vocabulary, and how words become ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from modelc.text.hf.added_tokens import MAX_TOKEN_ID
from modelc.text.hf.bpe_model import BpeModel, byte_ids
from modelc.text.hf.part import Part
from modelc.text.hf.splitters import Words
from modelc.text.unigram import Unigram
from modelc.text.word_piece import WordPiece

MAX_SCORE = 1e9


class WordModel(Protocol):
    """Words to token ids."""

    def encode(self, word: str) -> tuple[int, ...]:
        """Ids of one word."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a model is built with beside its own part.

    Attributes:
        vocab: Id of each token of the model.
        hidden: Ids of control tokens: never made from words.
        words: How words are made.
    """

    vocab: Mapping[str, int]
    hidden: frozenset[int]
    words: Words


def vocab_of(part: Part) -> dict[str, int]:
    """Id of each token: `vocab` is an object, or a list of texts with scores.

    Raises:
        BadFileError: It is neither, or ids are not sensible integers.
    """
    vocab = part.fields.get("vocab")
    if isinstance(vocab, list):
        texts = [entry[0] if type(entry) is list and len(entry) == 2 else None for entry in vocab]
        if set(map(type, texts)) - {str}:
            raise part.wrong("vocab", "texts with scores")
        vocab = {text: token for token, text in reversed(list(enumerate(texts)))}
    if not isinstance(vocab, Mapping) or set(map(type, vocab)) - {str}:
        raise part.wrong("vocab", "texts with ids, or texts with scores")
    if set(map(type, vocab.values())) - {int} or not all(0 <= token < MAX_TOKEN_ID for token in vocab.values()):
        raise part.wrong("vocab", f"ids from 0 to {MAX_TOKEN_ID - 1}")
    return dict(vocab)


def kind_of(part: Part) -> str:
    """The model's type, which early files leave out."""
    if part.has("type"):
        return part.kind
    return "BPE" if part.has("merges") else "Unigram" if isinstance(part.fields.get("vocab"), list) else "WordPiece"


def model_of(part: Part, context: Context) -> WordModel:
    """The model that `model` describes.

    Raises:
        BadFileError: A field is missing or wrong.
        UnsupportedError: A type that modelc does not have.
    """
    kind = kind_of(part)
    typed = Part({**part.fields, "type": kind}, part.where, part.depth)
    build = typed.choose("tokenizer model", {name: _constant(build) for name, build in _TYPES.items()})
    return build(part, context)


Build = Callable[[Part, Context], WordModel]


def _constant(build: Build) -> Callable[[Part], Build]:
    return lambda _: build


def _bpe(part: Part, context: Context) -> WordModel:
    return BpeModel(part, context.vocab, context.hidden, context.words)


def _unigram(part: Part, context: Context) -> WordModel:
    scores = [entry[1] for entry in part.items("vocab")]
    if set(map(type, scores)) - {int, float} or not all(-MAX_SCORE <= score <= MAX_SCORE for score in scores):
        raise part.wrong("vocab", "texts with scores")
    unknown = part.number("unk_id") if part.has("unk_id") else None
    if unknown is not None and not 0 <= unknown < len(scores):
        raise part.wrong("unk_id", f"an id from 0 to {len(scores) - 1}")
    tokens = {text: token for text, token in context.vocab.items() if token not in context.hidden and text}
    fallback = byte_ids(context.vocab) if part.flag("byte_fallback", False) else None
    return Unigram(tokens, list(map(float, scores)), unknown, fallback)


def _word_piece(part: Part, context: Context) -> WordModel:
    prefix = part.text("continuing_subword_prefix", "##")
    beginnings = {text: token for text, token in context.vocab.items() if token not in context.hidden}
    return WordPiece(
        beginnings,
        {text[len(prefix) :]: token for text, token in beginnings.items() if text.startswith(prefix)},
        context.vocab.get(part.text("unk_token", "[UNK]")),
        part.number("max_input_chars_per_word", 100),
    )


_TYPES: dict[str, Build] = {"BPE": _bpe, "Unigram": _unigram, "WordPiece": _word_piece}
