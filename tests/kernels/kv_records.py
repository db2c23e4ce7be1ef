"""Keys and values of a head in a page as NumPy records, written down a second time from the specification."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tests.kernels.float_math import F32

f32 = np.float32
LARGEST, SMALLEST = f32(1e38), f32(1e-30)

Records: TypeAlias = npt.NDArray[np.void]


def head_dtype(head_dim: int, kv: str) -> np.dtype:
    """A head's part of a page: keys of 4 chunks of 16 positions, values of 64 positions."""
    keys, values = (4, head_dim, 16), (64, head_dim)
    floats = {"f16": "<f2", "f32": "<f4", "mixed": "<f4"}
    fields: list[tuple[str, str, tuple[int, ...]]] = []
    if kv in ("int8", "mixed"):
        fields += [("key_codes", "i1", keys), ("key_scales", "<f4", (64,))]
        fields += [("value_codes", "i1", values), ("value_scales", "<f4", (64,))]
    if kv in floats:
        fields += [("keys", floats[kv], keys), ("values", floats[kv], values)]
    return np.dtype(fields)


def quantized(x: F32) -> tuple[npt.NDArray[np.int8], F32]:
    """Codes of vectors (…, head_dim), and their scales."""
    x = np.clip(x, -LARGEST, LARGEST)
    largest = np.abs(x).max(-1)
    with np.errstate(divide="ignore"):
        inverse = np.where(largest < SMALLEST, f32(0), f32(127) / largest)
    return np.rint(x * inverse[..., None]).astype(np.int8), largest / f32(127)


def store_keys(heads: Records, at: int, keys: F32) -> None:
    """Write key `at` of heads (n,), keys (n, head_dim), in every form that the records have."""
    _store(heads, "key", at, (slice(None), at // 16, slice(None), at % 16), keys)


def store_values(heads: Records, at: int, values: F32) -> None:
    """Write value `at` of heads (n,), values (n, head_dim), in every form that the records have."""
    _store(heads, "value", at, (slice(None), at), values)


def _store(heads: Records, name: str, at: int, place: tuple[int | slice, ...], x: F32) -> None:
    names = heads.dtype.names or ()
    if name + "_codes" in names:
        heads[name + "_codes"][place], heads[name + "_scales"][:, at] = quantized(x)
    if name + "s" in names:
        stored = heads[name + "s"]
        limit = LARGEST if stored.dtype.itemsize == 4 else f32(65504)
        stored[place] = np.clip(x, -limit, limit).astype(stored.dtype)


def exact_keys(heads: Records, at: int) -> F32:
    """Key `at` of heads (n,) from the most exact form, float32 (n, head_dim)."""
    if "keys" in (heads.dtype.names or ()):
        return heads["keys"][:, at // 16, :, at % 16].astype(f32)
    codes = heads["key_codes"][:, at // 16, :, at % 16]
    return codes.astype(f32) * heads["key_scales"][:, at, None]


def copy_value(heads: Records, at: int, to_heads: Records, to: int) -> None:
    """Value `at` of heads becomes value `to` of others, in every form."""
    for name in heads.dtype.names or ():
        if name.startswith("value"):
            to_heads[name][:, to] = heads[name][:, at]
