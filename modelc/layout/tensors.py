"""The bytes and values of an IR tensor, whatever layout it is stored in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from modelc.dtypes import DType
from modelc.errors import BadInputError
from modelc.ir import Tensor
from modelc.layout.convert import dequantize, from_lanes, to_lanes
from modelc.layout.table import LANES, RECORD_BYTES, lanes_nbytes

Bytes: TypeAlias = npt.NDArray[np.uint8]


def plain_bytes(tensor: Tensor) -> Bytes:
    """The source's own bytes, uint8 (tensor.dtype.nbytes(tensor.shape),): `stored` itself, or a new array from lanes.

    Raises:
        BadInputError: `stored` does not have the size of its layout.
    """
    if tensor.layout == "plain":
        return tensor.stored
    return from_lanes(tensor.dtype, tensor.stored, *_rows_cols(tensor))


def lanes_bytes(tensor: Tensor) -> Bytes:
    """The kernel layout, uint8 (lanes_nbytes(tensor.dtype, *tensor.shape),): `stored` itself, or a new array.

    Raises:
        BadInputError: The tensor has no such layout (see `is_lanes`), or `stored` not the size of its layout.
    """
    if tensor.layout == "lanes":
        return tensor.stored
    return to_lanes(tensor.dtype, tensor.stored, *_rows_cols(tensor))


def dequantize_rows(tensor: Tensor, start: int, stop: int) -> npt.NDArray[np.float32]:
    """Rows start to stop - 1 of a two-dimensional tensor, float32 (stop - start, cols); reads only what it needs.

    Raises:
        BadInputError: Rows outside the tensor, or a tensor that has no kernel layout (see `is_lanes`).
    """
    dtype, (rows, cols) = tensor.dtype, _rows_cols(tensor)
    if not 0 <= start <= stop <= rows:
        raise BadInputError("no such rows", tensor=tensor.name, got=f"{start} to {stop}", expected=f"0 to {rows}")
    if start == stop:
        return np.empty((0, cols), np.float32)
    row_bytes = dtype.nbytes((cols,))
    if tensor.layout == "plain":
        return dequantize(dtype, tensor.stored[start * row_bytes : stop * row_bytes], (stop - start, cols))
    group, group_bytes = start // LANES, lanes_nbytes(dtype, LANES, cols)
    n_groups = -(-stop // LANES) - group
    stored = tensor.stored[group * group_bytes : (group + n_groups) * group_bytes]
    blocks = from_lanes(dtype, stored, n_groups * LANES, cols)
    first = (start - group * LANES) * row_bytes
    return dequantize(dtype, blocks[first : first + (stop - start) * row_bytes], (stop - start, cols))


def is_float(dtype: DType) -> bool:
    """Whether the type's values are numbers that may be rounded: floats and quantized blocks, not integers."""
    return dtype.name in RECORD_BYTES or dtype.name in _OTHER_FLOATS


def float_rows(tensor: Tensor, start: int, stop: int) -> npt.NDArray[np.float32]:
    """Rows start to stop - 1 of a matrix of any float or block type, float32 (stop - start, cols).

    Raises:
        BadInputError: Rows outside the tensor, not a matrix, or a type that is not a float.
    """
    other = _OTHER_FLOATS.get(tensor.dtype.name)
    if other is None:
        return dequantize_rows(tensor, start, stop)
    rows, cols = _rows_cols(tensor)
    if not 0 <= start <= stop <= rows:
        raise BadInputError("no such rows", tensor=tensor.name, got=f"{start} to {stop}", expected=f"0 to {rows}")
    row_bytes = tensor.dtype.nbytes((cols,))
    return other(tensor.stored[start * row_bytes : stop * row_bytes]).reshape(stop - start, cols)


def _from_f64(stored: Bytes) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore", invalid="ignore"):
        return stored.view("<f8").astype(np.float32)


def _from_e5m2(stored: Bytes) -> npt.NDArray[np.float32]:
    return (stored.astype(np.uint16) << 8).view(np.float16).astype(np.float32)


def _from_e4m3(stored: Bytes) -> npt.NDArray[np.float32]:
    """Exponent bias 7, no infinities; the one magnitude that is NaN is 0x7F."""
    magnitude = stored & 127
    # As the upper bits of a float16 the exponent is 8 too small.
    values = (magnitude.astype(np.uint16) << 7).view(np.float16).astype(np.float32) * np.float32(256)
    values[magnitude == 127] = np.nan
    signed: npt.NDArray[np.float32] = np.copysign(values, np.where(stored & 128, np.float32(-1), np.float32(1)))
    return signed


_OTHER_FLOATS: dict[str, Callable[[Bytes], npt.NDArray[np.float32]]] = {
    "f64": _from_f64,
    "f8_e5m2": _from_e5m2,
    "f8_e4m3": _from_e4m3,
}


def _rows_cols(tensor: Tensor) -> tuple[int, int]:
    if len(tensor.shape) != 2:
        raise BadInputError("not a matrix", tensor=tensor.name, got=list(tensor.shape), expected="two dimensions")
    return tensor.shape[0], tensor.shape[1]
