"""A tokenizer's vocabulary as GGUF metadata state it: token texts, types, special ids, merges."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from modelc.errors import BadFileError

_LOG = logging.getLogger(__name__)

# Texts that end a turn or a document in known models.
_END_TEXTS = """<|eot_id|> <|im_end|> <|end|> <|return|> <|call|> <|calls|> <|flush|> <end_of_turn> <|endoftext|> </s>
<|eom_id|> <EOT> _<EOT> [EOT] [EOS] <|end_of_text|> <end_of_utterance> <eos> <｜end▁of▁sentence｜> [e~["""
# In code models: padding, the next repository, the next file. What follows is no longer the answer.
_CODE_END_TEXTS = """<|fim_pad|> <fim-pad> <fim_pad> <PAD> [PAD] <|fim_repo|> <|repo_name|> <fim-repo> <REPO> <reponame>
<|file_sep|>"""
_END_KEYS = ("eos", "eot", "eom", "fim_pad", "fim_rep", "fim_sep")


class TokenType(IntEnum):
    """GGUF's `tokenizer.ggml.token_type`."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Token texts and what the model file says about them.

    Attributes:
        tokens: Text of each id, in the byte alphabet for ordinary tokens.
        types: `TokenType` of each id; values that GGUF does not define count as ordinary.
        merges: `"left right"`, best first.
        bos_id: Beginning of text; None when the file names none.
        eos_id: End of text.
        pad_id: Padding.
        eog_ids: Every token that ends a generation.
        add_bos: Whether text starts with BOS; None when the file does not say.
        add_eos: Whether text ends with EOS.
        pre: Name of the pre-tokenizer; None when the file names none.
    """

    tokens: list[str]
    types: list[int]
    merges: list[str]
    bos_id: int | None = None
    eos_id: int | None = None
    pad_id: int | None = None
    eog_ids: frozenset[int] = frozenset()
    add_bos: bool | None = None
    add_eos: bool = False
    pre: str | None = None

    @classmethod
    def from_gguf(cls, metadata: Mapping[str, Any]) -> Vocabulary:
        """Read the `tokenizer.ggml.*` keys.

        Args:
            metadata: GGUF keys and their values, arrays as lists.

        Raises:
            BadFileError: A key that is needed is missing, has another type or length, or contradicts another.
        """
        tokens = _strings(metadata, "tokens")
        types = _types(metadata, len(tokens))
        merges = _strings(metadata, "merges")
        ids = {name: _token_id(metadata, f"{name}_token_id", len(tokens)) for name in (*_END_KEYS, "bos", "padding")}
        named = {token for token in ids.values() if token is not None}
        ends = {token for name in _END_KEYS if (token := ids[name]) is not None} | _listed_ends(metadata, len(tokens))
        known = _known_ends(tokens)
        _restore_types(tokens, types, merges, named | known)
        special = (TokenType.CONTROL, TokenType.USER_DEFINED)
        vocabulary = cls(
            tokens,
            types,
            merges,
            bos_id=ids["bos"],
            eos_id=ids["eos"],
            pad_id=ids["padding"],
            eog_ids=frozenset(ends | {token for token in known if types[token] in special}),
            add_bos=_flag(metadata, "add_bos_token"),
            add_eos=_flag(metadata, "add_eos_token") or False,
            pre=_text(metadata, "pre"),
        )
        for wanted, token, name in ((vocabulary.add_bos, ids["bos"], "bos"), (vocabulary.add_eos, ids["eos"], "eos")):
            if wanted and token is None:
                raise BadFileError(f"tokenizer.ggml.add_{name}_token is true, and there is no {name}_token_id")
        return vocabulary


def _value(metadata: Mapping[str, Any], name: str, kind: type, expected: str) -> Any:
    value = metadata.get(f"tokenizer.ggml.{name}")
    if value is not None and type(value) is not kind:
        raise BadFileError(f"tokenizer.ggml.{name} has the wrong type", expected=expected, got=type(value).__name__)
    return value


def _strings(metadata: Mapping[str, Any], name: str) -> list[str]:
    values = _value(metadata, name, list, "a list of strings")
    if not values and name == "tokens":
        values = _value(metadata, "vocab", list, "a list of strings")  # the key's name in early files
    if values is None or (not values and name == "tokens"):
        raise BadFileError(f"the tokenizer has no {name}", expected=f"tokenizer.ggml.{name}")
    strange = set(map(type, values)) - {str}
    if strange:
        raise BadFileError(
            f"tokenizer.ggml.{name} has the wrong type", expected="strings only", got=strange.pop().__name__
        )
    return list(values)


def _types(metadata: Mapping[str, Any], n_tokens: int) -> list[int]:
    types = _value(metadata, "token_type", list, "a list of integers")
    if types is None:
        return [TokenType.NORMAL] * n_tokens
    if set(map(type, types)) - {int}:
        raise BadFileError("tokenizer.ggml.token_type has the wrong type", expected="integers only")
    if len(types) < n_tokens:
        raise BadFileError("tokenizer.ggml.token_type is too short", expected=n_tokens, got=len(types))
    return list(types[:n_tokens])


def _token_id(metadata: Mapping[str, Any], name: str, n_tokens: int) -> int | None:
    token = _value(metadata, name, int, "an integer")
    if token is not None and not 0 <= token < n_tokens:
        _LOG.warning("tokenizer.ggml.%s is %d and the vocabulary has %d tokens: ignored", name, token, n_tokens)
        return None
    return None if token is None else int(token)


def _flag(metadata: Mapping[str, Any], name: str) -> bool | None:
    flag = _value(metadata, name, bool, "true or false")
    return None if flag is None else bool(flag)


def _text(metadata: Mapping[str, Any], name: str) -> str | None:
    text = _value(metadata, name, str, "a string")
    return None if text is None else str(text)


def _known_ends(tokens: Sequence[str]) -> set[int]:
    """Ids of the tokens whose text is a well-known end, whatever their type."""
    known = {*_END_TEXTS.split(), *_CODE_END_TEXTS.split()}
    found = {text: token for token, text in enumerate(tokens) if text in known}
    # Where a message ends with <|return|> or <|call|>, <|end|> only ends a part of it.
    if found.keys() & {"<|call|>", "<|calls|>"} and found.keys() & {"<|return|>", "<|flush|>"}:
        found.pop("<|end|>", None)
    return set(found.values())


def _restore_types(tokens: Sequence[str], types: list[int], merges: Sequence[str], special: set[int]) -> None:
    """Mark those of `special` as control tokens that the file calls ordinary.

    Converters have lost the type of real control tokens. No merge makes those; ordinary text that happens to look like
    one (`</s>` in a vocabulary of web pages) comes from a merge.
    """
    suspects = [token for token in special if types[token] == TokenType.NORMAL and len(tokens[token]) > 1]
    made = {merge.replace(" ", "", 1) for merge in merges} if suspects else set()
    for token in suspects:
        if tokens[token] not in made:
            types[token] = TokenType.CONTROL


def _listed_ends(metadata: Mapping[str, Any], n_tokens: int) -> set[int]:
    listed = _value(metadata, "eog_token_ids", list, "a list of integers") or []
    return {token for token in listed if type(token) is int and 0 <= token < n_tokens}
