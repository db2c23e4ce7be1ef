"""What flows between nodes: NumPy arrays, lists of them (sequences), None (an optional without a value)."""

from __future__ import annotations

import base64
import binascii
import math
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from modelc.errors import BadFileError, UnsupportedError
from modelc.formats.onnx_graph import ELEMENT_TYPES
from modelc.formats.onnx_plan import Constant
from modelc.ir import Tensor

Array: TypeAlias = npt.NDArray[Any]
Value: TypeAlias = Any  # Array, list[Array], or None

F32 = np.dtype(np.float32)
LANES = 16  # rows of a float matrix that are stored side by side

DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(kind)
    for name, kind in {
        "f32": np.float32,
        "f64": np.float64,
        "f16": np.float16,
        "u8": np.uint8,
        "u16": np.uint16,
        "u32": np.uint32,
        "u64": np.uint64,
        "i8": np.int8,
        "i16": np.int16,
        "i32": np.int32,
        "i64": np.int64,
        "bool": np.bool_,
        "c64": np.complex64,
        "c128": np.complex128,
        "string": np.object_,
    }.items()
}
# Types that NumPy lacks -> their names in `ml_dtypes`.
_EXTENSIONS = {
    "bf16": "bfloat16",
    "f8_e4m3": "float8_e4m3fn",
    "f8_e4m3fnuz": "float8_e4m3fnuz",
    "f8_e5m2": "float8_e5m2",
    "f8_e5m2fnuz": "float8_e5m2fnuz",
    "f8_e8m0": "float8_e8m0fnu",
    "f4_e2m1": "float4_e2m1fn",
    "u4": "uint4",
    "i4": "int4",
    "u2": "uint2",
    "i2": "int2",
}
DTYPES |= {name: np.dtype(getattr(ml_dtypes, title)) for name, title in _EXTENSIONS.items()}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
BY_NUMBER = {number: DTYPES[name] for number, name in ELEMENT_TYPES.items() if name in DTYPES}


def type_name(dtype: np.dtype[Any]) -> str:
    """The name of an element type in messages (`f32`)."""
    return NAMES.get(dtype, str(dtype))


def is_small_float(dtype: np.dtype[Any]) -> bool:
    """Whether it is a float of less than 32 bits, which is computed as float32."""
    return dtype in _SMALL_FLOATS


_SMALL_FLOATS = {DTYPES[name] for name in NAMES.values() if name[:2] in ("f8", "f4", "bf") or name == "f16"}


def constant_array(constant: Constant, tensors: dict[str, Tensor]) -> Array:
    """The value of a constant: read-only, aligned.

    Raises:
        BadFileError: The model does not have its tensor, or the plan's bytes do not fit.
    """
    if constant.tensor is not None:
        tensor = tensors.get(constant.tensor)
        if tensor is None:
            raise BadFileError("the plan names a tensor that the model does not have", tensor=constant.tensor)
        return _tensor_array(tensor)
    if constant.type == "string":
        strings = np.array(constant.strings, object)
        if len(strings) != math.prod(constant.shape):
            raise BadFileError("a constant's strings do not fit its shape", got=list(constant.shape))
        return strings.reshape(constant.shape)
    dtype = _dtype(constant.type)
    try:
        data = base64.b64decode(constant.data, validate=True)
    except binascii.Error:
        raise BadFileError("a constant in the plan is damaged", expected="base64") from None
    if any(size < 0 for size in constant.shape) or len(data) != math.prod(constant.shape) * dtype.itemsize:
        raise BadFileError("a constant's bytes do not fit its shape", got=f"{len(data)} for {list(constant.shape)}")
    array: Array = np.frombuffer(data, dtype).reshape(constant.shape).copy()
    array.flags.writeable = False
    return array


def _dtype(name: str) -> np.dtype[Any]:
    if name not in DTYPES:
        raise UnsupportedError("this element type is not supported", got=name)
    return DTYPES[name]


def _tensor_array(tensor: Tensor) -> Array:
    if tensor.dtype.is_block:  # quantized when the model was packed
        return _dequantized(tensor)
    dtype = _dtype(tensor.dtype.name)
    stored = tensor.stored.copy() if tensor.stored.ctypes.data % dtype.itemsize else tensor.stored
    if tensor.layout == "plain":
        return stored.view(dtype).reshape(tensor.shape)
    rows, columns = tensor.shape
    groups = -(-rows // LANES)
    if stored.nbytes != groups * LANES * columns * dtype.itemsize:
        raise BadFileError("a tensor's bytes do not fit its shape", tensor=tensor.name, got=stored.nbytes)
    side_by_side = stored.view(dtype).reshape(groups, columns, LANES)
    return np.ascontiguousarray(side_by_side.transpose(0, 2, 1).reshape(groups * LANES, columns)[:rows])


def _dequantized(tensor: Tensor) -> Array:
    try:
        from modelc.layout.tensors import dequantize_rows  # late: it takes Numba, which compiled files leave out
    except ImportError:
        hint = "pack the model without --quantize"
        raise UnsupportedError("quantized graphs in a compiled file", tensor=tensor.name, hint=hint) from None
    return dequantize_rows(tensor, 0, tensor.shape[0])
