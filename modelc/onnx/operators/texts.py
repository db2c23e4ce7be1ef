"""Operators on strings."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from modelc.onnx.call import Call
from modelc.onnx.operator import Table
from modelc.onnx.values import Array

MAX_PATTERN_CHARS = 1000


def _each(x: Array, function: Callable[[str], Any], dtype: Any = object) -> Array:
    values = [function(text) for text in x.reshape(-1).tolist()]
    y = np.empty(len(values), dtype)
    y[:] = values
    return y.reshape(x.shape)


def string_concat(call: Call, a: Array, b: Array) -> Array:
    """Texts joined, with broadcasting."""
    left, right = np.broadcast_arrays(a, b)
    joined = [x + y for x, y in zip(left.reshape(-1).tolist(), right.reshape(-1).tolist(), strict=True)]
    return np.array(joined, object).reshape(left.shape)


def string_split(call: Call, x: Array) -> tuple[Array, Array]:
    """The parts of each text, filled up with empty ones, and how many there are."""
    separator = call.attribute("delimiter", str, "") or None
    most = call.attribute("maxsplit", int, -1)
    parts = [text.split(separator, most) for text in x.reshape(-1).tolist()]
    longest = max(map(len, parts), default=0)
    filled = [each + [""] * (longest - len(each)) for each in parts]
    y = np.array(filled, object).reshape(*x.shape, longest)
    return y, np.array([len(each) for each in parts], np.int64).reshape(x.shape)


def string_normalizer(call: Call, x: Array) -> Array:
    """Texts without stop words, in one case."""
    case = call.choice("case_change_action", "NONE", ("NONE", "LOWER", "UPPER"))
    sensitive = bool(call.attribute("is_case_sensitive", int, 0))
    stops = {str(word) if sensitive else str(word).lower() for word in call.attribute("stopwords", list, [])}
    changes: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}
    change = changes[case]

    def kept(row: list[str]) -> list[str]:
        return [change(text) for text in row if (text if sensitive else text.lower()) not in stops]

    if x.ndim == 1:
        return np.array(kept(x.tolist()) or [""], object)
    if x.ndim != 2 or len(x) != 1:
        raise call.fail("not one row of texts", got=list(x.shape))
    return np.array([kept(x[0].tolist()) or [""]], object)


def regex_full_match(call: Call, x: Array) -> Array:
    """Whether each text matches a pattern."""
    pattern = call.attribute("pattern", str)
    if len(pattern) > MAX_PATTERN_CHARS:
        raise call.unsupported("a pattern of this length", got=len(pattern), expected=f"at most {MAX_PATTERN_CHARS}")
    matcher = re.compile(pattern)
    return _each(x, lambda text: matcher.fullmatch(text) is not None, np.bool_)


def tfidf(call: Call, x: Array) -> Array:
    """How often n-grams of a pool occur in each row, or weights of those that occur."""
    mode = call.choice("mode", "", ("TF", "IDF", "TFIDF"))
    least, most = call.attribute("min_gram_length", int), call.attribute("max_gram_length", int)
    most_skip = call.attribute("max_skip_count", int)
    starts = call.integers("ngram_counts")
    places = call.integers("ngram_indexes")
    name = "pool_strings" if "pool_strings" in call.node.attributes else "pool_int64s"
    pool: list[Any] = call.attribute(name, list)
    weights = call.attribute("weights", list, [1.0] * len(places))
    grams: dict[tuple[Any, ...], int] = {}
    for i, start in enumerate(starts):
        end = starts[i + 1] if i + 1 < len(starts) else len(pool)
        for at in range(start, end, i + 1):
            grams[tuple(pool[at : at + i + 1])] = len(grams)
    if len(grams) != len(places) or len(weights) != len(places) or min(places, default=0) < 0:
        raise call.fail(
            "the n-grams do not fit", got=f"{len(grams)} grams, {len(places)} places, {len(weights)} weights"
        )
    rows = x.reshape(1, -1) if x.ndim < 2 else x
    call.room((len(rows), max(places, default=-1) + 1))
    counts = np.zeros((len(rows), max(places, default=-1) + 1), np.float32)
    factors = np.zeros(counts.shape[1], np.float32)
    factors[places] = weights
    for row, values in zip(counts, rows.tolist(), strict=True):
        for n in range(least, most + 1):
            for skip in range(1 if n == 1 else most_skip + 1):
                for at in range(len(values) - (n - 1) * (skip + 1)):
                    found = grams.get(tuple(values[at : at + (n - 1) * (skip + 1) + 1 : skip + 1]))
                    if found is not None:
                        row[places[found]] += 1
    y = counts if mode == "TF" else (counts > 0) * factors if mode == "IDF" else counts * factors
    return y.astype(np.float32).reshape(*x.shape[:-1], -1)


TEXTS: Table = {
    "RegexFullMatch": regex_full_match,
    "StringConcat": string_concat,
    "StringNormalizer": string_normalizer,
    "StringSplit": string_split,
    "TfIdfVectorizer": tfidf,
}
