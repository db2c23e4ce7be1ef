"""How a head's keys and values lie in its part of a page. Numbers only, like `env`.

A page holds 64 positions of all layers; in each layer, heads follow one another. A head has its keys and values in
one form, or in two:

    f16, f32    keys (4 chunks, head_dim, 16 positions) | values (64 positions, head_dim)
    int8        codes of the keys in the same order | 64 f32 scales | codes of the values | 64 f32 scales
    mixed       as int8 | as f32

A scale belongs to one position's key or value of one head: max |x| / 127.
"""

from __future__ import annotations

from dataclasses import dataclass

from modelc.kernels.env import PAGE

FORMS = {"f16": ("f16",), "f32": ("f32",), "int8": ("int8",), "mixed": ("int8", "f32")}  # by type; the exact one last
ELEMENT_BYTES = {"f16": 2, "f32": 4, "int8": 1}
SCALE_BYTES = {"f16": 0, "f32": 0, "int8": 4}

# How far ahead of use pages are fetched. Measured at 64 columns: int8 needs 0.87 of the time with 2, f16 1.1.
PAGES_AHEAD = {"f16": 1, "f32": 1, "int8": 2}


@dataclass(frozen=True, slots=True)
class Form:
    """Keys and values of one head in one form.

    Attributes:
        dtype: `f16`, `f32` or `int8`.
        keys, key_scales, values, value_scales: byte offsets in the head's part of a page; floats have no scales.
        stop: where the form ends.
    """

    dtype: str
    keys: int
    key_scales: int
    values: int
    value_scales: int
    stop: int


def forms(head_dim: int, kv: str) -> list[Form]:
    """The forms of type `kv`, for heads of `head_dim` columns."""
    result: list[Form] = []
    at = 0
    for dtype in FORMS[kv]:
        size, scales = PAGE * head_dim * ELEMENT_BYTES[dtype], PAGE * SCALE_BYTES[dtype]
        values = at + size + scales
        result.append(Form(dtype, at, at + size, values, values + size, values + size + scales))
        at = result[-1].stop
    return result


def head_bytes(head_dim: int, kv: str) -> int:
    """Bytes of a head's keys and values in a page."""
    return forms(head_dim, kv)[-1].stop
