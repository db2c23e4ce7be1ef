"""What a user may give for texts: one or several, as strings or as token ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

from modelc.errors import BadInputError

EXPECTED = "a string, token ids, or a list of either"


def token_lists(texts: Any, tokenize: Callable[[str], list[int]], param: str = "texts") -> tuple[list[list[int]], bool]:
    """The tokens of each text, and whether it is one alone.

    Args:
        texts: a string, a sequence of token ids, or a sequence of either.
        tokenize: makes tokens of a string.
        param: what messages call the argument.

    Raises:
        BadInputError: something else.
    """
    if isinstance(texts, str):
        return [tokenize(texts)], True
    items = as_sequence(texts, param, EXPECTED)
    if not items:
        raise BadInputError("no text", param=param, expected=EXPECTED)
    if isinstance(items[0], Integral):
        return [as_ids(items, param)], True
    return [tokenize(each) if isinstance(each, str) else as_ids(each, param) for each in items], False


def as_ids(ids: Any, param: str = "ids") -> list[int]:
    """Token ids as a list of integers.

    Raises:
        BadInputError: not a sequence, or something in it is no integer.
    """
    items = as_sequence(ids, param, "token ids")
    wrong = next((item for item in items if not isinstance(item, Integral) or isinstance(item, bool)), None)
    if wrong is not None:
        raise BadInputError("a token is no integer", param=param, expected="token ids", got=_short(wrong))
    return [int(item) for item in items]


def check_ids(tokens: Sequence[int], vocab_size: int, n_ctx: int, param: str = "ids") -> None:
    """Raise BadInputError unless a model can read `tokens`: at least one, none unknown, not more than fit."""
    if not tokens:
        raise BadInputError("the text has no tokens", param=param, expected="at least one token")
    if len(tokens) > n_ctx:
        raise BadInputError("too many tokens", param=param, expected=f"at most {n_ctx}", got=len(tokens))
    wrong = next((token for token in tokens if not 0 <= token < vocab_size), None)
    if wrong is not None:
        raise BadInputError("no such token", param=param, expected=f"ids below {vocab_size}", got=wrong)


def as_sequence(values: Any, param: str, expected: str) -> list[Any]:
    """A sequence or one-dimensional array as a list."""
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise BadInputError("wrong type", param=param, expected=expected, got=_short(values))
    return list(values)


def _short(value: object) -> str:
    return f"{type(value).__name__} {value!r}"[:80]
