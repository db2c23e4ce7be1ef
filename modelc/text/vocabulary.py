"""A tokenizer's vocabulary as GGUF metadata state it: token texts, types, special ids, merges."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from math import isfinite
from typing import Any

from modelc.errors import BadFileError
from modelc.text.ends import known_ends

_LOG = logging.getLogger(__name__)

NAME_KEY = "general.name"
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
        add_eos: Whether text ends with EOS; None when the file does not say.
        pre: Name of the pre-tokenizer; None when the file names none.
        scores: Score of each id; empty when they are not needed.
        unknown_id: For what no token covers.
        cls_id: Begins what an encoder reads.
        sep_id: Ends what an encoder reads.
        add_space_prefix: Whether text starts with a space that is not part of it; None when the file does not say.
        rstrip_ids: Tokens that take the white space after them.
    """

    tokens: list[str]
    types: list[int]
    merges: list[str]
    bos_id: int | None = None
    eos_id: int | None = None
    pad_id: int | None = None
    eog_ids: frozenset[int] = frozenset()
    add_bos: bool | None = None
    add_eos: bool | None = None
    pre: str | None = None
    scores: list[float] = field(default_factory=list)
    unknown_id: int | None = None
    cls_id: int | None = None
    sep_id: int | None = None
    add_space_prefix: bool | None = None
    rstrip_ids: frozenset[int] = frozenset()

    @classmethod
    def from_gguf(
        cls, metadata: Mapping[str, Any], needs: str = "merges", default_ids: Mapping[str, int] | None = None
    ) -> Vocabulary:
        """Read the `tokenizer.ggml.*` keys.

        Args:
            metadata: GGUF keys and their values, arrays as lists.
            needs: What there must be beside the tokens: "merges", "scores" or "".
            default_ids: Special ids, by the names in GGUF, that hold where the file has no such key.

        Raises:
            BadFileError: A key that is needed is missing, has another type or length, or contradicts another.
        """
        tokens = _strings(metadata, "tokens")
        types = _types(metadata, len(tokens))
        merges = _strings(metadata, "merges") if needs == "merges" else []
        ids = {name: _token_id(metadata, f"{name}_token_id", len(tokens)) for name in (*_END_KEYS, "bos", "padding")}
        others = {
            name: _token_id(metadata, f"{name}_token_id", len(tokens)) for name in ("unknown", "cls", "seperator")
        }
        for name, default in (default_ids or {}).items():
            table = others if name in others else ids
            if f"tokenizer.ggml.{name}_token_id" not in metadata and default < len(tokens):
                table[name] = default
        named = {token for token in ids.values() if token is not None}
        ends = {token for name in _END_KEYS if (token := ids[name]) is not None} | _listed_ends(metadata, len(tokens))
        known = known_ends(enumerate(tokens))
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
            add_eos=_flag(metadata, "add_eos_token"),
            pre=_text(metadata, "pre"),
            scores=_scores(metadata, len(tokens)) if needs == "scores" else [],
            unknown_id=others["unknown"],
            cls_id=others["cls"],
            sep_id=others["seperator"],
            add_space_prefix=_flag(metadata, "add_space_prefix"),
            rstrip_ids=_rstrip_ids(metadata, tokens, types),
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


def _scores(metadata: Mapping[str, Any], n_tokens: int) -> list[float]:
    scores = _value(metadata, "scores", list, "a list of numbers")
    if scores is None or len(scores) < n_tokens:
        raise BadFileError("the tokenizer has no score for each token", expected=n_tokens, got=len(scores or ()))
    if set(map(type, scores)) - {float, int} or not all(map(isfinite, scores)):
        raise BadFileError("tokenizer.ggml.scores has the wrong type", expected="finite numbers only")
    return list(map(float, scores[:n_tokens]))


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


def _rstrip_ids(metadata: Mapping[str, Any], tokens: Sequence[str], types: Sequence[int]) -> frozenset[int]:
    """GGUF has no key for it: Phi-3's marks of turns take the white space after them, and no other model's do."""
    name = metadata.get(NAME_KEY)
    if not isinstance(name, str) or not any(phi in name.casefold() for phi in ("phi-3", "phi3")):
        return frozenset()
    special = (TokenType.CONTROL, TokenType.USER_DEFINED)
    return frozenset(
        token for token, kind in enumerate(types) if kind in special and tokens[token] not in ("<s>", "<|endoftext|>")
    )


def _listed_ends(metadata: Mapping[str, Any], n_tokens: int) -> set[int]:
    listed = _value(metadata, "eog_token_ids", list, "a list of integers") or []
    return {token for token in listed if type(token) is int and 0 <= token < n_tokens}
