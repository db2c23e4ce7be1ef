"""What a model file says about itself, found without reading its weights: for `inspect` and `list`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from modelc import formats
from modelc.dtypes import DType
from modelc.formats.onnx_plan import KEY as PLAN
from modelc.ir import JSON
from modelc.resolve import parts_of

if TYPE_CHECKING:
    from modelc.onnx import Description


@dataclass(frozen=True, slots=True)
class TensorSummary:
    """One tensor."""

    name: str
    dtype: str  # "f32", "q4_1", …
    shape: tuple[int, ...]  # outermost dimension first
    parameters: int  # logical elements
    bytes: int  # size in the source's own layout


@dataclass(frozen=True, slots=True)
class Summary:
    """One model file."""

    path: str
    name: str
    architecture: str
    format: str  # of the file: "gguf", "modelc", …
    source_format: str  # of the file that the model was first read from
    compression: str  # "none" or "zstd"
    quantization: str  # the type of most parameters
    parameters: int  # logical elements of all tensors
    total_bytes: int  # size of all tensors in the source's own layout
    file_bytes: int  # of all files that make up the model
    tensors: tuple[TensorSummary, ...]  # sorted by name
    metadata: dict[str, JSON]
    graph: Description | None = None  # of ONNX models: inputs, outputs, operators

    def to_json(self) -> dict[str, Any]:
        """Return everything as values of strict JSON: NaN and infinities become strings."""
        return {**asdict(self), "metadata": _strict(self.metadata)}


@dataclass(frozen=True, slots=True)
class QuantSize:
    """What the tensors of a model would take in one type."""

    dtype: str
    bytes: int  # of the values alone, without the scales of int8 and int4
    change_percent: float  # against what they take now


def quant_sizes(summary: Summary) -> list[QuantSize]:
    """Sizes of all tensors in fp32, fp16, int8, int4 (two in a byte) and q4_0 (18 bytes for 32, scale included).

    They come from the numbers of elements alone, each tensor rounded up to whole bytes or blocks.
    """
    counts = [tensor.parameters for tensor in summary.tensors]
    sizes = {
        "fp32": sum(4 * n for n in counts),
        "fp16": sum(2 * n for n in counts),
        "int8": sum(counts),
        "int4": sum(-(-n // 2) for n in counts),
        "q4_0": sum(18 * -(-n // 32) for n in counts),
    }
    now = sum(tensor.bytes for tensor in summary.tensors)
    return [QuantSize(name, size, 100 * (size - now) / now if now else 0.0) for name, size in sizes.items()]


class _Described(Protocol):
    """What tensors of the IR and rows of a `.modelc` header have in common."""

    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def shape(self) -> tuple[int, ...]: ...


def inspect(path: str | Path, format: str | None = None) -> Summary:
    """Summarise a model file of any format that modelc reads.

    Args:
        path: the file or folder.
        format: its format; None to tell it from the file.

    Raises:
        BadInputError: `format` is not a format.
        NotFoundError: no such file.
        BadFileError: the file is damaged, or of no known format.
        UnsupportedError: the format, its version or a tensor type is not supported.
    """
    path = Path(path)
    format = formats.detect(path, format)
    if format == "modelc":
        header = formats.modelc.read_header(path)
        return _summary(path, format, header, header.entries, header.compression)
    model = formats.open_model(path, format)
    return _summary(path, format, model, model.tensors.values(), "none")


class _Named(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def architecture(self) -> str: ...
    @property
    def source_format(self) -> str: ...
    @property
    def metadata(self) -> dict[str, JSON]: ...


def _summary(path: Path, format: str, model: _Named, described: Iterable[_Described], compression: str) -> Summary:
    tensors = tuple(
        TensorSummary(t.name, t.dtype.name, t.shape, prod(t.shape), t.dtype.nbytes(t.shape)) for t in described
    )
    n_params: Counter[str] = Counter()
    for tensor in tensors:
        n_params[tensor.dtype] += tensor.parameters
    return Summary(
        path=str(path),
        name=model.name,
        architecture=model.architecture,
        format=format,
        source_format=model.source_format,
        compression=compression,
        quantization=max(n_params, key=lambda dtype: (n_params[dtype], dtype), default="none"),
        parameters=n_params.total(),
        total_bytes=sum(tensor.bytes for tensor in tensors),
        file_bytes=sum(part.stat().st_size for part in parts_of(path)),
        tensors=tensors,
        metadata=model.metadata,
        graph=_graph(model.metadata),
    )


def _graph(metadata: dict[str, JSON]) -> Description | None:
    if PLAN not in metadata:
        return None
    from modelc.onnx import describe

    return describe(metadata[PLAN])


def _strict(value: JSON) -> JSON:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [_strict(item) for item in value]
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    return value
