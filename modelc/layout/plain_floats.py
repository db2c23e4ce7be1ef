"""Float matrices to kernel layout and back, and their values, by NumPy alone: for processes that have no compiler.

Slower than the loops of `loops`, with the same bytes. Block types need the loops.
"""

from __future__ import annotations

import functools
import importlib.util
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from modelc.layout.table import LANES

Bytes: TypeAlias = npt.NDArray[np.uint8]

ELEMENT_BYTES = {"f32": 4, "f16": 2, "bf16": 2}


@functools.cache
def lacks_compiler() -> bool:
    """Whether loops cannot be compiled here, as in a compiled file."""
    return importlib.util.find_spec("numba") is None


def to_lanes(dtype_name: str, plain: Bytes, rows: int, cols: int) -> Bytes:
    """Rows one after another into groups of 16, a column of a group after the other; the last group padded by zeros."""
    size = ELEMENT_BYTES[dtype_name]
    padded = np.zeros((-(-rows // LANES) * LANES, cols, size), np.uint8)
    padded[:rows] = plain.reshape(rows, cols, size)
    return np.ascontiguousarray(padded.reshape(-1, LANES, cols, size).swapaxes(1, 2)).reshape(-1)


def from_lanes(dtype_name: str, stored: Bytes, rows: int, cols: int) -> Bytes:
    """The inverse of `to_lanes`."""
    size = ELEMENT_BYTES[dtype_name]
    turned = np.ascontiguousarray(stored.reshape(-1, cols, LANES, size).swapaxes(1, 2))
    return turned.reshape(-1)[: rows * cols * size]


def dequantize(dtype_name: str, plain: Bytes) -> npt.NDArray[np.float32]:
    """The values, float32 (elements,); exact."""
    if dtype_name == "f32":
        return plain.view(np.float32).copy()
    if dtype_name == "f16":
        return plain.view(np.float16).astype(np.float32)
    return (plain.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
