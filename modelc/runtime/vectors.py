"""What a user may give for vectors of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from modelc.errors import BadInputError
from modelc.runtime.loaded import F32


def as_vectors(values: Any, param: str = "input", length: int | None = None) -> F32:
    """One vector, float32 (n,), or a batch of them, (rows, n); neither is empty.

    `length`: what n should be, for messages.

    Raises:
        BadInputError: something else, for example rows of different lengths.
    """
    try:
        array = np.asarray(values)
    except ValueError:
        expected = "one length for all" if length is None else f"{length} numbers in each"
        raise BadInputError("rows of different lengths", param=param, expected=expected) from None
    if array.dtype.kind not in "fiub" or array.ndim not in (1, 2) or array.size == 0:
        kind = "text" if array.dtype.kind == "U" else array.dtype
        got = "nothing" if array.size == 0 else f"{kind} {list(array.shape) or ''}".strip()
        raise BadInputError("not a vector", param=param, expected="numbers, or a list of lists of them", got=got)
    if array.dtype == np.float32:
        return array
    with np.errstate(over="ignore"):
        return array.astype(np.float32)


def as_rows(values: Any, param: str = "input") -> tuple[list[F32], bool]:
    """Vectors of any lengths, float32 (1, n) each, and whether it is one alone.

    Raises:
        BadInputError: something else.
    """
    nested = isinstance(values, list | tuple) and len(values) > 0 and isinstance(values[0], list | tuple | np.ndarray)
    arrays = [as_vectors(row, param) for row in values] if nested else [as_vectors(values, param)]
    alone = not nested and arrays[0].ndim == 1
    return [row[None] for array in arrays for row in np.atleast_2d(array)], alone


def resized(rows: F32, cols: int) -> F32:
    """float32 (n, any) cut or filled with zeros to (n, cols)."""
    fitted = np.zeros((len(rows), cols), np.float32)
    n = min(cols, rows.shape[1])
    fitted[:, :n] = rows[:, :n]
    return fitted
