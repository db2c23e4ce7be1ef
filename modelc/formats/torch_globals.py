"""What a PyTorch checkpoint may refer to by name, and what it becomes: descriptions of storages and tensors.

Source: torch 2.13, `torch/_utils.py` (the arguments of `_rebuild_tensor_v2`, `_rebuild_tensor_v3`,
`_rebuild_parameter`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from reprlib import repr as short_repr
from typing import Any, NoReturn

from modelc.dtypes import DTYPES, DType
from modelc.errors import UnsupportedError
from modelc.ir import MAX_DIMS, MAX_INT

_SAVE_AGAIN = "save only its state_dict with torch.save, or convert it to Safetensors"

# Storage classes and element types by their names in torch.
_STORAGES = {
    "DoubleStorage": "f64",
    "FloatStorage": "f32",
    "HalfStorage": "f16",
    "BFloat16Storage": "bf16",
    "LongStorage": "i64",
    "IntStorage": "i32",
    "ShortStorage": "i16",
    "CharStorage": "i8",
    "ByteStorage": "u8",
    "BoolStorage": "bool",
}
_ELEMENTS = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "f8_e4m3",
    "float8_e5m2": "f8_e5m2",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint8": "u8",
    "bool": "bool",
}


@dataclass(frozen=True, slots=True)
class Storage:
    """A member of the archive seen as elements; `dtype` is None where the tensor says it."""

    key: str
    dtype: DType | None


@dataclass(frozen=True, slots=True)
class TensorView:
    """A tensor as a view of a storage; `offset` and `strides` count elements."""

    key: str
    dtype: DType
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Global:
    """What the file refers to by name: `build` makes a value of arguments; None for a mere name."""

    name: str
    build: Callable[[Any], Any] | None = None
    dtype: DType | None = None


class WrongError(Exception):
    """What is wrong with an operation or its arguments."""


def wrong(what: str, value: object) -> NoReturn:
    """Raises a `WrongError` that shows `value`."""
    raise WrongError(f"{what}: {short_repr(value)}")


def global_of(name: str) -> Global:
    """What a checkpoint means by `module name`.

    Raises:
        UnsupportedError: Anything but tensors and plain containers; `got` is its name.
    """
    module, _, leaf = name.partition(" ")
    known = _GLOBALS.get(name)
    if known is not None:
        return known
    if module == "torch" and leaf in _STORAGES:
        return Global(leaf, dtype=DTYPES[_STORAGES[leaf]])
    if module == "torch" and leaf in _ELEMENTS:
        return Global(leaf, dtype=DTYPES[_ELEMENTS[leaf]])
    got = ".".join(filter(None, (module, leaf)))
    raise UnsupportedError(
        "the checkpoint is made of more than tensors",
        got=got,
        expected="tensors and plain containers",
        hint=_SAVE_AGAIN,
    )


# ---- what the globals in the table do


def _ordered_dict(arguments: tuple[Any, ...]) -> dict[Any, Any]:
    if arguments:
        wrong("an ordered dictionary with arguments", arguments)
    return {}


def _tensor_v2(arguments: tuple[Any, ...]) -> TensorView:
    match arguments:
        case (Storage(key, DType() as dtype), offset, shape, strides, bool(), _, *_):
            return _view(key, dtype, offset, shape, strides)
    wrong("a tensor of another form", arguments)


def _tensor_v3(arguments: tuple[Any, ...]) -> TensorView:
    match arguments:
        case (Storage(key, None), offset, shape, strides, bool(), _, Global(dtype=DType() as dtype), *_):
            return _view(key, dtype, offset, shape, strides)
    wrong("a tensor of another form", arguments)


def _parameter(arguments: tuple[Any, ...]) -> TensorView:
    match arguments:
        case (TensorView() as view, *_):
            return view
    wrong("a parameter that is no tensor", arguments)


def _view(key: str, dtype: DType, offset: Any, shape: Any, strides: Any) -> TensorView:
    if type(shape) is not tuple or type(strides) is not tuple or len(shape) != len(strides) or len(shape) > MAX_DIMS:
        wrong("a wrong shape", (shape, strides))
    if not all(type(value) is int and 0 <= value <= MAX_INT for value in (offset, *shape, *strides, prod(shape))):
        wrong("a wrong shape", (offset, shape, strides))
    return TensorView(key, dtype, offset, shape, strides)


_GLOBALS = {
    "collections OrderedDict": Global("OrderedDict", _ordered_dict),
    "torch._utils _rebuild_tensor_v2": Global("_rebuild_tensor_v2", _tensor_v2),
    "torch._utils _rebuild_tensor_v3": Global("_rebuild_tensor_v3", _tensor_v3),
    "torch._utils _rebuild_parameter": Global("_rebuild_parameter", _parameter),
    "torch.storage UntypedStorage": Global("UntypedStorage"),
}
