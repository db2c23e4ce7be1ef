"""Metadata as GGUF has it: a type for every value, chosen as llama.cpp expects it.

JSON knows fewer types than GGUF. Keys that llama.cpp reads with a certain type get that; other numbers get the smallest
usual type that holds them exactly: u32, i32, u64, i64; f32, f64.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from struct import pack

import numpy as np

from modelc.errors import UnsupportedError
from modelc.ir import JSON

U8, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = 0, 4, 5, 6, 7, 8, 9, 10, 11, 12

_CODES = {U8: "<B", U32: "<I", I32: "<i", F32: "<f", BOOL: "<?", U64: "<Q", I64: "<q", F64: "<d"}
_DTYPES = {U8: "u1", U32: "<u4", I32: "<i4", F32: "<f4", BOOL: "?", U64: "<u8", I64: "<i8", F64: "<f8"}
# Arrays that llama.cpp reads as memory of this element type.
_ARRAY_KEYS = {
    "tokenizer.ggml.precompiled_charsmap": U8,
    "tokenizer.ggml.scores": F32,
    "tokenizer.ggml.token_type": I32,
}
# Numbers that are float32 even where they are whole, or have more digits than one holds.
_FLOAT_KEYS = re.compile(
    r"\.(attention\.(layer_norm_epsilon|layer_norm_rms_epsilon|group_norm_epsilon|scale|clamp_kqv|max_alibi_bias)"
    r"|rope\.(freq_base(_swa)?|scale_linear|scaling\.(factor|attn_factor|yarn_\w+))"
    r"|(attn|final)_logit_softcapping|logit_scale|residual_scale|embedding_scale)$"
)


def encode_key(key: str, value: JSON) -> bytes:
    """A row of the metadata: name, type, value.

    Raises:
        UnsupportedError: GGUF has no type for the value: an object, null, or a list of different kinds.
    """
    return encode_string(key) + _typed(key, value)


def encode_string(text: str) -> bytes:
    """A string: its length in bytes, and the bytes; escaped bytes that were no UTF-8 come back as they were."""
    try:
        content = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a lone surrogate that stands for no byte
        content = text.encode("utf-8", "surrogatepass")
    return pack("<Q", len(content)) + content


def _typed(key: str, value: JSON) -> bytes:
    if isinstance(value, str):
        return pack("<I", STRING) + encode_string(value)
    if isinstance(value, list):
        return pack("<I", ARRAY) + _array(key, value)
    if isinstance(value, bool | int | float):
        kind = F32 if _FLOAT_KEYS.search(key) and not isinstance(value, bool) else _kind(key, [value])
        return pack("<I", kind) + _scalar(kind, value)
    raise _no_type(key, "null" if value is None else "an object")


def _array(key: str, items: list[JSON]) -> bytes:
    kind = _ARRAY_KEYS[key] if key in _ARRAY_KEYS else _element_kind(key, items)
    head = pack("<IQ", kind, len(items))
    if kind == STRING:
        return head + b"".join(encode_string(item) for item in items if isinstance(item, str))
    if kind == ARRAY:
        return head + b"".join(_array(key, item) for item in items if isinstance(item, list))
    if not all(isinstance(item, bool | int | float) for item in items):
        raise _no_type(key, "a list with something else than numbers")
    try:
        return head + np.array(items, _DTYPES[kind]).tobytes()
    except OverflowError:
        raise _no_type(key, "a number out of range") from None


def _element_kind(key: str, items: list[JSON]) -> int:
    kinds: tuple[tuple[int, Callable[[JSON], bool]], ...] = (
        (STRING, lambda item: isinstance(item, str)),
        (ARRAY, lambda item: isinstance(item, list)),
    )
    for kind, is_kind in kinds:
        if all(map(is_kind, items)):  # an empty list is one of strings
            return kind
    numbers = [item for item in items if isinstance(item, bool | int | float)]
    if len(numbers) != len(items):
        raise _no_type(key, "a list of different kinds")
    return _kind(key, numbers)


def _kind(key: str, numbers: list[bool | int | float]) -> int:
    """The type that holds all the numbers."""
    if all(isinstance(number, bool) for number in numbers):
        return BOOL
    if any(isinstance(number, float) for number in numbers):
        values = np.array(numbers, np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            exact = (values == values.astype(np.float32)) | np.isnan(values)
        return F32 if exact.all() else F64
    least, most = min(numbers), max(numbers)
    # Lists of whole numbers are i32 in llama.cpp's files, single ones u32.
    order = (U32, I32) if len(numbers) == 1 else (I32, U32)
    for kind in (*order, U64, I64):
        limits = np.iinfo(_DTYPES[kind])
        if limits.min <= least and most <= limits.max:
            return kind
    raise _no_type(key, "a whole number of more than 64 bits")


def _scalar(kind: int, value: bool | int | float) -> bytes:
    if kind == F32:
        with np.errstate(over="ignore"):
            return np.array(value, "<f4").tobytes()
    return pack(_CODES[kind], value)


def _no_type(key: str, got: str) -> UnsupportedError:
    return UnsupportedError(f"GGUF cannot hold the metadata key {key}", got=got, expected="numbers, strings, lists")
