"""What every tokenizer can do, and the choice of one for a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from modelc.errors import BadFileError, UnsupportedError
from modelc.text.bpe import BpeTokenizer
from modelc.text.sentencepiece import SentencePieceTokenizer
from modelc.text.shield import shielded_parts
from modelc.text.vocabulary import NAME_KEY


class Tokenizer(Protocol):
    """Text to token ids and back."""

    @property
    def vocab_size(self) -> int:
        """Number of tokens."""

    @property
    def bos_id(self) -> int | None:
        """Beginning of text."""

    @property
    def eos_id(self) -> int | None:
        """End of text."""

    @property
    def pad_id(self) -> int | None:
        """Padding."""

    @property
    def bos_token(self) -> str:
        """Text of BOS, empty when there is none."""

    @property
    def eos_token(self) -> str:
        """Text of EOS, empty when there is none."""

    @property
    def eog_ids(self) -> frozenset[int]:
        """Every token that ends a generation."""

    @property
    def special_ids(self) -> frozenset[int]:
        """Control tokens: recognised in text on request only."""

    @property
    def special_texts(self) -> frozenset[str]:
        """Texts of the control tokens."""

    @property
    def longest_token_bytes(self) -> int | None:
        """Most bytes of text (UTF-8) that one token can stand for; None where there is no bound."""

    @property
    def add_bos(self) -> bool:
        """Whether `encode` puts BOS in front."""

    def encode(self, text: str, add_special: bool = True, parse_special: bool = False) -> list[int]:
        """Token ids of `text`, with BOS and EOS as the model wants them if `add_special`."""

    def encode_parts(self, parts: Iterable[tuple[str, bool]]) -> list[int]:
        """Token ids of one text in parts, none added; the flags: control tokens are recognised in the part."""

    def least_tokens(self, text: str) -> int:
        """A number of tokens that `text` has at least, without encoding it; 0 where there is no bound."""

    def decode(self, ids: Iterable[int], skip_special: bool = False) -> str:
        """Text of `ids`; ids outside the vocabulary are skipped."""

    def decode_bytes(self, ids: Iterable[int], skip_special: bool = False) -> bytes:
        """Bytes of `ids`; ids outside the vocabulary are skipped."""

    def token_bytes(self, token: int) -> bytes:
        """Bytes that a token adds to a text that has begun; none for an unknown id."""

    def first_token_bytes(self, token: int) -> bytes:
        """Bytes of a token that begins a text: some tokenizers take its leading space away."""


def _word_piece(metadata: Mapping[str, Any]) -> Tokenizer:
    from modelc.text.word_piece_tokenizer import WordPieceTokenizer  # late, as below: patterns that few models need

    return WordPieceTokenizer.from_gguf(metadata)


def _unigram(metadata: Mapping[str, Any]) -> Tokenizer:
    from modelc.text.unigram_tokenizer import UnigramTokenizer

    return UnigramTokenizer.from_gguf(metadata)


_BY_MODEL: dict[str, Callable[[Mapping[str, Any]], Tokenizer]] = {
    "gpt2": BpeTokenizer.from_gguf,
    "llama": SentencePieceTokenizer.from_gguf,
    "bert": _word_piece,
    "t5": _unigram,
}
_NO_TOKENIZER = frozenset({"none", "no_vocab"})


def load_tokenizer(metadata: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer that a model's metadata describe.

    Args:
        metadata: The model's keys as its file has them, arrays as lists; the parsed `tokenizer.json` under
            `tokenizer`, with `tokenizer_config`, `generation_config` and `config` beside it.

    Returns:
        The bytes as tokens (`BpeTokenizer.byte_fallback`) for a model without a tokenizer.

    Raises:
        BadFileError: The tokenizer's keys are incomplete or contradict each other.
        UnsupportedError: The tokenizer is of a kind that modelc does not have.
    """
    if metadata.get("tokenizer") is not None:
        from modelc.text.hf import HfTokenizer

        return HfTokenizer(metadata)
    keys = tokenizer_metadata(metadata)
    model = keys.get("tokenizer.ggml.model")
    if model is None and "tokenizer.ggml.tokens" not in keys:
        return BpeTokenizer.byte_fallback()
    if not isinstance(model, str):
        raise BadFileError("tokenizer.ggml.model is missing or is no text", expected="a name", got=model)
    if model in _NO_TOKENIZER:
        return BpeTokenizer.byte_fallback()
    load = _BY_MODEL.get(model)
    if load is None:
        raise UnsupportedError(
            "this tokenizer is not supported", got=f"tokenizer.ggml.model '{model}'", expected=" or ".join(_BY_MODEL)
        )
    return load({**keys, NAME_KEY: metadata.get(NAME_KEY)})


def tokenizer_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a model that concern its tokenizer, `tokenizer.ggml.vocab` of early files under today's name."""
    keys = {key: value for key, value in metadata.items() if key.startswith("tokenizer.")}
    early = keys.pop("tokenizer.ggml.vocab", None)
    if early is not None:
        keys.setdefault("tokenizer.ggml.tokens", early)
    return keys


def encode_prompt(tokenizer: Tokenizer, prompt: str) -> list[int]:
    """Token ids of a prompt that a chat template made: its control tokens recognised, BOS once, no EOS at the end.

    What `shield_messages` marked stays text.
    """
    ids = tokenizer.encode_parts(shielded_parts(prompt, tokenizer.special_texts))
    if tokenizer.add_bos and tokenizer.bos_id is not None and ids[:1] != [tokenizer.bos_id]:
        ids.insert(0, tokenizer.bos_id)
    return ids
