"""Whole tensors: source bytes to kernel layout and back, source bytes to float32.

Every size is compared here before a compiled loop, which checks nothing, runs.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from modelc.dtypes import DType
from modelc.errors import BadInputError
from modelc.layout.table import LANES, RECORD_BYTES, lanes_nbytes

Bytes: TypeAlias = npt.NDArray[np.uint8]


def to_lanes(dtype: DType, plain: Bytes, rows: int, cols: int, out: Bytes | None = None) -> Bytes:
    """Source bytes into kernel layout. Rows are independent: a tensor may be converted by runs of 16 rows.

    Args:
        dtype: A type in `RECORD_BYTES`.
        plain: uint8 (dtype.nbytes((rows, cols)),), the tensor as its source has it; read only.
        rows: Rows of the tensor.
        cols: Columns, whole blocks.
        out: uint8 (lanes_nbytes(dtype, rows, cols),) to write to; a new array when None.

    Returns:
        `out`, uint8 (lanes_nbytes(dtype, rows, cols),).

    Raises:
        BadInputError: The type has no kernel layout, or an array has another size or form.
    """
    nbytes = lanes_nbytes(dtype, rows, cols)
    _check("plain", plain, dtype.nbytes((rows, cols)))
    if out is None:
        out = np.empty(nbytes, np.uint8)
    elif not out.flags.writeable:
        raise BadInputError("cannot write to this array", param="out", got="a read-only array")
    _check("out", out, nbytes)
    from modelc.layout.loops import to_lanes_loop

    loop = to_lanes_loop(dtype.name)
    record_bytes, n_blocks = RECORD_BYTES[dtype.name], cols // dtype.block_cols
    n_groups, rest = divmod(rows, LANES)
    group_bytes = LANES * n_blocks * dtype.block_bytes
    if n_groups:
        loop(plain, dtype.block_bytes, out, record_bytes, n_blocks, n_groups)
    if rest:
        padded = np.zeros(group_bytes, np.uint8)
        padded[: plain.size - n_groups * group_bytes] = plain[n_groups * group_bytes :]
        last = out[n_groups * n_blocks * record_bytes :]
        loop(padded, dtype.block_bytes, last, record_bytes, n_blocks, 1)
    return out


def from_lanes(dtype: DType, stored: Bytes, rows: int, cols: int) -> Bytes:
    """Kernel layout back into source bytes: the exact inverse of `to_lanes`, whatever the bits.

    Args:
        dtype: A type in `RECORD_BYTES`.
        stored: uint8 (lanes_nbytes(dtype, rows, cols),); read only.
        rows: Rows of the tensor.
        cols: Columns, whole blocks.

    Returns:
        uint8 (dtype.nbytes((rows, cols)),), a new array.

    Raises:
        BadInputError: The type has no kernel layout, or `stored` has another size or form.
    """
    _check("stored", stored, lanes_nbytes(dtype, rows, cols))
    from modelc.layout.loops import from_lanes_loop

    n_groups, n_blocks = -(-rows // LANES), cols // dtype.block_cols
    blocks = np.zeros(n_groups * LANES * n_blocks * dtype.block_bytes, np.uint8)
    loop = from_lanes_loop(dtype.name)
    loop(stored, RECORD_BYTES[dtype.name], blocks, dtype.block_bytes, n_blocks, n_groups)
    return blocks[: dtype.nbytes((rows, cols))]


def dequantize(dtype: DType, plain: Bytes, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    """Source bytes into the float32 values that ggml defines for them, bit for bit.

    Args:
        dtype: A type in `RECORD_BYTES`.
        plain: uint8 (dtype.nbytes(shape),); read only.
        shape: Of the tensor, any number of dimensions, outermost first.

    Returns:
        float32 (shape).

    Raises:
        BadInputError: The type is not a float or block type, or `plain` has another size or form.
    """
    if dtype.name not in RECORD_BYTES:
        expected = ", ".join(RECORD_BYTES)
        raise BadInputError("cannot dequantize this type", param="dtype", got=dtype.name, expected=expected)
    _check("plain", plain, dtype.nbytes(shape))
    from modelc.layout.loops import dequantize_loop

    values = np.empty(shape, np.float32)
    n_blocks = plain.size // dtype.block_bytes
    if n_blocks:
        target = values.reshape(-1).view(np.uint8)
        dequantize_loop(dtype.name)(plain, dtype.block_bytes, target, target.size // n_blocks, 1, n_blocks)
    return values


def _check(param: str, array: Bytes, nbytes: int) -> None:
    if array.dtype != np.uint8 or array.ndim != 1 or not array.flags.c_contiguous or array.size != nbytes:
        got = f"{array.dtype} {list(array.shape)}"
        raise BadInputError("wrong array", param=param, got=got, expected=f"contiguous uint8 [{nbytes}]")
