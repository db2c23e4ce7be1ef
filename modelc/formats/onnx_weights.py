"""Reads an ONNX model: its weights (inline, typed, external and in segments) and its graph.

Source: `onnx.proto` of ONNX 1.23 (IR version 13) and its external data format.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from modelc.dtypes import DTYPES, DType
from modelc.errors import BadFileError, ModelcError, NotFoundError, UnsupportedError
from modelc.formats.checkpoint import model_of, read_sidecars
from modelc.formats.contained import contained
from modelc.formats.mapping import map_file
from modelc.formats.onnx_graph import plan_of
from modelc.formats.onnx_graph import text as _text
from modelc.formats.onnx_plan import KEY, read_plan
from modelc.formats.signature import HEAD_BYTES, looks_like
from modelc.ir import JSON, MAX_DIMS, MAX_INT, Model, Tensor

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto

MAX_FILE_BYTES = (1 << 31) - 1  # Protocol Buffers allow no more; larger models have external data

_HINT = "the file is damaged or not complete: download it again"

# Number of the element type -> the type here, the field that has its values where raw_data is not used, and the
# integer or float type of those values.
_TYPES: dict[int, tuple[str, str, str]] = {
    1: ("f32", "float_data", "<f4"),
    2: ("u8", "int32_data", "u1"),
    3: ("i8", "int32_data", "i1"),
    5: ("i16", "int32_data", "<i2"),
    6: ("i32", "int32_data", "<i4"),
    7: ("i64", "int64_data", "<i8"),
    9: ("bool", "int32_data", "u1"),
    10: ("f16", "int32_data", "<u2"),
    11: ("f64", "double_data", "<f8"),
    16: ("bf16", "int32_data", "<u2"),
    17: ("f8_e4m3", "int32_data", "u1"),
    19: ("f8_e5m2", "int32_data", "u1"),
}
_FIELDS = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")

Bytes: TypeAlias = npt.NDArray[np.uint8]


def read(path: str | PathLike[str]) -> Model:
    """Reads the weights and the graph of an ONNX file.

    Args:
        path: A `.onnx` file.

    Returns:
        The model; tensors with external data are read-only views of the mapped files. Metadata has the keys of
        `metadata_props`, `onnx.execution_plan`, `onnx.ir_version`, `onnx.opset` and what stands beside the file.

    Raises:
        NotFoundError: The file, or one with external data, does not exist.
        BadFileError: Damaged, truncated or hostile content.
        UnsupportedError: An element type that modelc does not read, or sparse initializers.
    """
    path = Path(path)
    proto = _parse(path)
    if proto.graph.sparse_initializer:
        raise UnsupportedError("sparse initializers", path=path, hint="export the model with dense weights")
    files: dict[str, Bytes] = {}
    pieces: dict[str, list[TensorProto]] = {}
    for initializer in proto.graph.initializer:
        pieces.setdefault(_text(initializer.name), []).append(initializer)
    tensors = [_tensor(name, protos, path, files) for name, protos in pieces.items()]
    metadata: dict[str, JSON] = {_text(prop.key): _text(prop.value) for prop in proto.metadata_props}
    names = set(pieces)

    def keep(name: str, constant: TensorProto) -> str | None:
        if constant.data_type not in _TYPES:
            return None
        unique, number = name, 1
        while unique in names:
            number += 1
            unique = f"{name} {number}"
        names.add(unique)
        tensors.append(_tensor(unique, [constant], path, files))
        return unique

    plan = plan_of(proto, path, keep)
    try:
        read_plan(plan)
    except ModelcError as error:
        error.path = str(path)
        raise
    metadata[KEY] = plan
    metadata["onnx.ir_version"] = proto.ir_version
    metadata["onnx.opset"] = {_text(entry.domain): entry.version for entry in proto.opset_import}
    return model_of(path, "onnx", {**metadata, **read_sidecars(path.parent)}, tensors)


def _parse(path: Path) -> ModelProto:
    data = map_file(path)
    if len(data) > MAX_FILE_BYTES:
        hint = "save the model with external data"
        raise BadFileError("the file is too large", path=path, expected="less than 2 GiB", got=len(data), hint=hint)
    from google.protobuf.message import DecodeError
    from onnx import ModelProto

    proto = ModelProto()
    try:
        proto.ParseFromString(data[:])
    except DecodeError:
        proto.Clear()
    if not proto.ir_version or not proto.HasField("graph"):
        got = looks_like(data[:HEAD_BYTES])
        raise BadFileError("not an ONNX file, or a damaged one", path=path, expected="a model", got=got, hint=_HINT)
    return proto


def _tensor(name: str, protos: list[TensorProto], path: Path, files: dict[str, Bytes]) -> Tensor:
    first = protos[0]
    shape = tuple(first.dims)
    if len(shape) > MAX_DIMS or any(dim < 0 for dim in shape) or prod(shape) > MAX_INT:
        raise _wrong("a wrong shape", path, name, f"at most {MAX_DIMS} sizes", list(shape))
    dtype = _dtype(first, path, name)
    segmented = [proto.HasField("segment") for proto in protos]
    if any(proto.data_type != first.data_type or tuple(proto.dims) != shape for proto in protos):
        raise _wrong("two tensors have the same name", path, name, "one tensor, or segments of one", len(protos))
    if not any(segmented):
        if len(protos) > 1:
            raise _wrong("two tensors have the same name", path, name, "different names", len(protos))
        return Tensor(name, dtype, shape, _stored(name, first, dtype, prod(shape), path, files))
    end = 0
    chunks = []
    for proto in sorted(protos, key=lambda proto: proto.segment.begin):
        if not proto.HasField("segment") or proto.segment.begin != end or proto.segment.end < end:
            raise _wrong("the segments do not follow each other", path, name, f"one at {end}", proto.segment.begin)
        chunks.append(_stored(name, proto, dtype, proto.segment.end - end, path, files))
        end = proto.segment.end
    if end != prod(shape):
        raise _wrong("the segments do not fill the tensor", path, name, prod(shape), end)
    return Tensor(name, dtype, shape, np.concatenate(chunks))


def _dtype(proto: TensorProto, path: Path, name: str) -> DType:
    if proto.data_type in _TYPES:
        return DTYPES[_TYPES[proto.data_type][0]]
    from onnx import TensorProto

    known = {number: title for title, number in TensorProto.DataType.items()}
    title = known.get(proto.data_type, "")
    if not title or title == "UNDEFINED":
        raise _wrong("unknown element type", path, name, "a type of ONNX", proto.data_type)
    expected = ", ".join(known[number] for number in _TYPES)
    raise UnsupportedError(f"element type {title} is not supported", path=path, tensor=name, expected=expected)


def _stored(name: str, proto: TensorProto, dtype: DType, n_elements: int, path: Path, files: dict[str, Bytes]) -> Bytes:
    """The bytes of a tensor or segment of `n_elements`, uint8 (n_bytes,)."""
    n_bytes = n_elements * dtype.block_bytes
    _, field, kind = _TYPES[proto.data_type]
    if proto.data_location == proto.EXTERNAL:
        stored = _external(name, proto, n_bytes, path, files)
    elif proto.HasField("raw_data"):
        stored = np.frombuffer(proto.raw_data, np.uint8)
    else:
        other = next((each for each in _FIELDS if each != field and len(getattr(proto, each))), None)
        if other is not None:
            raise _wrong("a tensor's values are in the wrong field", path, name, field, other)
        stored = _typed(getattr(proto, field), kind, path, name)
    if stored.nbytes != n_bytes:
        expected = f"{n_bytes} bytes for {dtype.name} {list(proto.dims)}"
        raise _wrong("a tensor's bytes do not fit its shape", path, name, expected, stored.nbytes)
    return stored


def _typed(values: Iterable[Any], kind: str, path: Path, name: str) -> Bytes:
    if kind[-2] == "f":
        return np.array(list(values), kind).view(np.uint8)
    wide = np.array(list(values), np.int64)
    narrow = wide.astype(kind)
    if not np.array_equal(narrow, wide):
        raise _wrong("a value is out of range", path, name, np.dtype(kind).name, wide[narrow != wide][0])
    return narrow.view(np.uint8)


def _external(name: str, proto: TensorProto, n_bytes: int, path: Path, files: dict[str, Bytes]) -> Bytes:
    fields = {_text(entry.key): _text(entry.value) for entry in proto.external_data}
    location = fields.get("location")
    if not location:
        raise _wrong("external data without a location", path, name, "a file name", "none")
    if n_bytes == 0:
        return np.empty(0, np.uint8)
    numbers = {"offset": 0, "length": n_bytes}
    for key in numbers:
        text = fields.get(key)
        if text is None:
            continue
        if not text.isdecimal() or len(text) > 19:
            raise _wrong(f"external data with a wrong {key}", path, name, "a whole number", repr(text))
        numbers[key] = int(text)
    if location not in files:
        place = contained(location.removeprefix("./"), path, folders=True, tensor=name)
        try:
            files[location] = np.frombuffer(map_file(place), np.uint8)
        except NotFoundError as error:
            hint = "put it beside the model"
            raise NotFoundError("a file of external data is missing", path=error.path, hint=hint) from None
    data, begin, length = files[location], numbers["offset"], numbers["length"]
    if begin + length > data.nbytes:
        expected, got = f"a file of at least {begin + length} bytes", f"{data.nbytes} bytes"
        raise _wrong(f"external data runs past the end of {location}", path, name, expected, got)
    return data[begin : begin + length]


def _wrong(what: str, path: Path, name: str, expected: object, got: object) -> BadFileError:
    return BadFileError(what, path=path, tensor=name, expected=expected, got=got, hint=_HINT)
