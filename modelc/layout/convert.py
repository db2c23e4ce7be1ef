"""Whole tensors: source bytes to kernel layout and back, source bytes to float32.

Every size is compared here before a compiled loop, which checks nothing, runs.
"""

from __future__ import annotations

from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from modelc.dtypes import DType
from modelc.errors import BadInputError
from modelc.layout import plain_floats
from modelc.layout.table import LANES, RECORD_BYTES, lanes_nbytes

Bytes: TypeAlias = npt.NDArray[np.uint8]

# What `quantize` makes.
QUANTIZED_TYPES = (
    "f32",
    "f16",
    "bf16",
    "q4_0",
    "q4_1",
    "q5_0",
    "q5_1",
    "q8_0",
    "q2_k",
    "q3_k",
    "q4_k",
    "q5_k",
    "q6_k",
    "iq4_nl",
    "iq4_xs",
)
MAX_BLOCK_VALUE = 65504.0  # the largest float16


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
    if dtype.name in plain_floats.ELEMENT_BYTES and plain_floats.lacks_compiler():
        out[:] = plain_floats.to_lanes(dtype.name, plain, rows, cols)
        return out
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
    if dtype.name in plain_floats.ELEMENT_BYTES and plain_floats.lacks_compiler():
        return plain_floats.from_lanes(dtype.name, stored, rows, cols)
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
    if dtype.name in plain_floats.ELEMENT_BYTES and plain_floats.lacks_compiler():
        return plain_floats.dequantize(dtype.name, plain).reshape(shape)
    from modelc.layout.loops import dequantize_loop

    values = np.empty(shape, np.float32)
    n_blocks = plain.size // dtype.block_bytes
    if n_blocks:
        target = values.reshape(-1).view(np.uint8)
        dequantize_loop(dtype.name)(plain, dtype.block_bytes, target, target.size // n_blocks, 1, n_blocks)
    return values


def quantize(dtype: DType, values: npt.NDArray[np.float32], shape: tuple[int, ...]) -> Bytes:
    """Values into source bytes of a float or block type, the inverse of `dequantize` up to rounding.

    Scales are searched for the least sum of squared errors; the same values give the same bytes, on every CPU and with
    any number of threads.

    Args:
        dtype: One of `QUANTIZED_TYPES`.
        values: float32 (shape), contiguous; read only.
        shape: Of the tensor, outermost first; the last dimension whole blocks.

    Returns:
        uint8 (dtype.nbytes(shape),), a new array.

    Raises:
        BadInputError: Another type, a wrong array, or a value above 65504, which float16 and the float16 scales of
            block types cannot hold; block types cannot hold infinities and NaN either.
    """
    if dtype.name not in QUANTIZED_TYPES:
        expected = ", ".join(QUANTIZED_TYPES)
        raise BadInputError("cannot quantize to this type", param="dtype", got=dtype.name, expected=expected)
    nbytes = dtype.nbytes(shape)
    if values.dtype != np.float32:
        raise BadInputError("wrong array", param="values", got=values.dtype, expected="float32")
    source = values.reshape(-1).view(np.uint8)
    _check("values", source, 4 * prod(shape))
    if dtype.name == "f32":
        return source.copy()
    if dtype.name == "f16":
        with np.errstate(over="ignore", invalid="ignore"):
            halves = values.reshape(-1).astype("<f2")
        if np.isinf(halves).sum() != np.isinf(values).sum():
            got = np.abs(values[np.isfinite(values)]).max()
            raise BadInputError("a value that float16 cannot hold", param="values", got=got, expected="at most 65504")
        return halves.view(np.uint8)
    if dtype.name == "bf16":
        return _bf16(source.view(np.uint32))
    most = max(abs(float(values.max(initial=0))), abs(float(values.min(initial=0))))
    if not most <= MAX_BLOCK_VALUE:  # also where it is NaN
        raise BadInputError(
            "a value that a block type cannot hold", param="values", got=most, expected=f"at most {MAX_BLOCK_VALUE}"
        )
    from modelc.layout.loops import quantize_loop

    blocks = np.empty(nbytes, np.uint8)
    if n_blocks := nbytes // dtype.block_bytes:
        quantize_loop(dtype.name)(source, 4 * dtype.block_cols, blocks, dtype.block_bytes, 1, n_blocks)
    return blocks


def _bf16(bits: npt.NDArray[np.uint32]) -> Bytes:
    """The nearest bfloat16, half to even; a NaN stays one."""
    nearest = (bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) >> 16
    upper = np.where((bits & 0x7FFFFFFF) > 0x7F800000, bits >> 16 | 64, nearest)
    return upper.astype("<u2").view(np.uint8)


def _check(param: str, array: Bytes, nbytes: int) -> None:
    if array.dtype != np.uint8 or array.ndim != 1 or not array.flags.c_contiguous or array.size != nbytes:
        got = f"{array.dtype} {list(array.shape)}"
        raise BadInputError("wrong array", param=param, got=got, expected=f"contiguous uint8 [{nbytes}]")
