"""Filters and text methods of chat templates: what Jinja and Hugging Face offer, with a bound on what they build."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any

from jinja2.filters import FILTERS
from jinja2.runtime import Context
from jinja2.utils import pass_context

from modelc.text.template_budget import ITEM_UNITS, Budget, RefusedError, budget_of

MAX_TEXT_CHARS = 1 << 26
MAX_INDENT = 64
MAX_PRECISION = 100

# Filters whose cost does not go with the size of what they are given, or that Jinja bounds itself.
_CHEAP = """abs attr capitalize count d default e escape first float int items last length lower map reject rejectattr
reverse select selectattr title trim truncate upper urlencode wordcount"""

_WIDTHS = re.compile(r"%(?:\([^)]*\))?([^a-zA-Z%]*)|\{([^{}]*[{}])")


def bounded_filters() -> dict[str, Callable[..., Any]]:
    """The filters that templates may use, by name."""
    deep = {name: _paid(FILTERS[name], "environment") for name in ("groupby", "max", "min", "sort", "unique")}
    return {
        **{name: FILTERS[name] for name in _CHEAP.split()},
        **deep,
        "dictsort": _paid(FILTERS["dictsort"]),
        "format": _format,
        "indent": _indent,
        "join": _paid(FILTERS["join"], "eval_ctx"),
        "list": _list,
        "replace": _replace,
        "round": _round,
        "safe": lambda value: value,  # nothing is escaped, so nothing needs the mark
        "string": _paid(FILTERS["string"]),
        "sum": _sum,
        "tojson": _tojson,
    }


def concat(pieces: Iterable[str]) -> str:
    """Join `pieces`, or raise RefusedError above `MAX_TEXT_CHARS`."""
    texts: list[str] = []
    left = MAX_TEXT_CHARS
    for piece in pieces:
        left -= len(piece)
        if left < 0:
            raise RefusedError(f"its text is longer than {MAX_TEXT_CHARS} characters")
        texts.append(piece)
    return "".join(texts)


def pay_for_method(budget: Budget, text: str, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Pay for what the method `name` of `text` is about to build."""
    budget.spend(len(text))
    if name == "replace":
        _pay_for_replace(budget, text, *args[:2])
    elif name == "join":
        budget.spend_on(*args)
        budget.spend(len(text) * sum(len(values) for values in args if hasattr(values, "__len__")))
    elif name == "format":
        pay_for_format(budget, text, (args, kwargs))
    elif name in {"split", "rsplit", "splitlines"}:
        budget.spend(ITEM_UNITS * len(text))


def pay_for_format(budget: Budget, text: str, values: object) -> None:
    """Pay for `text` with `values` put in place of its fields, in either of Python's two notations."""
    fields = ["".join(groups) for groups in _WIDTHS.findall(text)]
    numbers = [number for field in fields for number in re.findall(r"\d+", field)]
    if any(len(number) > 4 for number in numbers) or any("*" in field or "{" in field for field in fields):
        raise RefusedError("it formats to an unreasonable width")
    budget.spend(len(text) + sum(map(int, numbers)))
    budget.spend_on(values, times=len(fields))


def _paid(function: Callable[..., Any], first: str | None = None) -> Callable[..., Any]:
    """`function`, paid for with all that is in its value; `first` is the attribute of the context it wants first."""

    @pass_context
    @wraps(function)
    def paid(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
        if hasattr(value, "__next__"):
            value = list(value)
        budget_of(context).spend_on(value, *args)
        if isinstance(value, (list, tuple)) and args and isinstance(args[0], str):
            budget_of(context).spend(len(value) * len(args[0]))
        return function(*([getattr(context, first)] if first else []), value, *args, **kwargs)

    # wraps() copied the mark of what Jinja is to pass first; ours is the context.
    return pass_context(paid)


@pass_context
def _format(context: Context, text: str, *args: Any, **kwargs: Any) -> str:
    pay_for_format(budget_of(context), str(text), (args, kwargs))
    return str(text) % (kwargs or args)


@pass_context
def _indent(context: Context, text: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    columns = width if isinstance(width, int) else len(width)
    if columns > MAX_INDENT:
        raise RefusedError(f"it indents by more than {MAX_INDENT}")
    budget_of(context).spend(len(text) + columns * (text.count("\n") + 1))
    return str(FILTERS["indent"](text, width, first, blank))


@pass_context
def _list(context: Context, values: Iterable[Any]) -> list[Any]:
    if isinstance(values, str):
        budget_of(context).spend(ITEM_UNITS * len(values))
    return list(values)


@pass_context
def _replace(context: Context, text: object, old: str, new: str, count: int = -1) -> str:
    budget_of(context).spend_on(text)
    _pay_for_replace(budget_of(context), str(text), str(old), str(new))
    return str(text).replace(str(old), str(new), count)


@pass_context
def _sum(context: Context, values: Iterable[Any], attribute: str | int | None = None, start: float = 0) -> Any:
    if not isinstance(start, (int, float)):
        raise RefusedError("it sums what are no numbers")
    return FILTERS["sum"](context.environment, values, attribute, start)


def _round(value: float, precision: int = 0, method: str = "common") -> Any:
    if abs(precision) > MAX_PRECISION:
        raise RefusedError(f"it rounds to more than {MAX_PRECISION} digits")
    return FILTERS["round"](value, precision, method)


@pass_context
def _tojson(
    context: Context,
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    *,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as Hugging Face's templates expect it: characters as they are, nothing escaped for HTML."""
    budget_of(context).spend_on(value)
    if indent is not None and (indent if isinstance(indent, int) else len(indent)) > MAX_INDENT:
        raise RefusedError(f"it indents by more than {MAX_INDENT}")
    encoder = json.JSONEncoder(ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
    return concat(encoder.iterencode(value))


def _pay_for_replace(budget: Budget, text: str, old: object = "", new: object = "") -> None:
    if isinstance(old, str) and isinstance(new, str):
        budget.spend(len(text) + text.count(old) * len(new))
