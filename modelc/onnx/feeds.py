"""What a user gives for a graph's inputs, as the arrays that it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from modelc.errors import BadInputError, did_you_mean
from modelc.formats.onnx_plan import Declared
from modelc.onnx.values import DTYPES, Array, Value, type_name

_NUMBERS = "fiub"


def feeds_of(values: Mapping[str, Any], inputs: Sequence[Declared]) -> dict[str, Value]:
    """One value for each input, in the graph's order.

    Raises:
        BadInputError: A name is missing or unknown, or a value has a wrong type or shape.
    """
    names = [each.name for each in inputs]
    unknown = next((name for name in values if name not in names), None)
    if unknown is not None:
        hint = did_you_mean(str(unknown), names) or None
        raise BadInputError("no such input", param=str(unknown), expected=", ".join(names), hint=hint)
    missing = next((each for each in inputs if each.name not in values), None)
    if missing is not None:
        raise BadInputError("an input is missing", param=missing.name, expected=str(missing))
    return {each.name: value_of(values[each.name], each) for each in inputs}


def value_of(value: Any, declared: Declared) -> Value:
    """An array of the declared type and shape; sequences and optional values as they are."""
    if declared.type in ("sequence", "optional"):
        return [np.asarray(each) for each in value] if isinstance(value, list | tuple) else value
    array = _array(value, declared)
    if declared.shape is not None:
        fits = array.ndim == len(declared.shape) and all(
            not isinstance(size, int) or size == n for size, n in zip(declared.shape, array.shape, strict=False)
        )
        if not fits:
            raise _wrong("a wrong shape", declared, f"{type_name(array.dtype)} {list(array.shape)}")
    return array


def with_batch(value: Any, declared: Declared) -> tuple[Any, bool]:
    """The value with a batch of one in front where it has one dimension less than declared, and whether it had."""
    if declared.shape is None or isinstance(value, Mapping):
        return value, False
    array = _array(value, declared)
    return (array[None], True) if array.ndim == len(declared.shape) - 1 else (array, False)


def _array(value: Any, declared: Declared) -> Array:
    try:
        array: Array = np.asarray(value)
    except ValueError:
        raise _wrong("rows of different lengths", declared, "nested lists") from None
    if declared.type is None or declared.type not in DTYPES:
        return array
    dtype = DTYPES[declared.type]
    if array.dtype == dtype:
        return array
    if dtype == np.dtype(object):
        if array.dtype.kind not in "USO" or not all(isinstance(each, str) for each in array.reshape(-1).tolist()):
            raise _wrong("not texts", declared, type_name(array.dtype))
        return array.astype(object)
    if array.dtype.kind not in _NUMBERS and array.size:
        raise _wrong("not numbers", declared, type_name(array.dtype))
    if array.dtype.kind == "f" and dtype.kind in "iub" and array.size:
        raise _wrong("not whole numbers", declared, type_name(array.dtype))
    with np.errstate(all="ignore"):
        converted = array.astype(dtype)
    if dtype.kind in "iu" and array.dtype.kind in "iu" and not np.array_equal(converted, array):
        raise _wrong("a number is out of range", declared, f"{array.min()} to {array.max()}")
    return converted


def _wrong(what: str, declared: Declared, got: str) -> BadInputError:
    return BadInputError(what, param=declared.name, expected=str(declared), got=got)
