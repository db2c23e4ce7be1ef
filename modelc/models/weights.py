"""A model's tensors as an architecture asks for them: matrices in place, vectors as float32 constants."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

import numpy as np
import numpy.typing as npt

from modelc import layout
from modelc.dtypes import DTYPES
from modelc.errors import BadFileError, UnsupportedError, did_you_mean
from modelc.ir import Model, Tensor
from modelc.models.hugging_face import HuggingFace, split_name
from modelc.program import LowRank, Weight

Shapes = Mapping[str, tuple[int, ...]]


class Weights:
    """The tensors of `model` under the architecture's own names.

    Attributes:
        base: the address that `Weight.offset` counts from: of the lowest matrix in memory.
        sources: what the source calls these tensors.

    Args:
        model: The source.
        shapes: Every tensor that must be there, with its shape.
        optional: Tensors that may be there.
        source: How the source names and stores tensors, if not as GGUF does: (inputs, outputs) are turned, in memory.
        lender: Weights whose tensors of the same names are used, where they are.
    """

    def __init__(
        self,
        model: Model,
        shapes: Shapes,
        optional: Shapes | None = None,
        source: HuggingFace | None = None,
        lender: Weights | None = None,
    ) -> None:
        borrowed = {} if lender is None else lender._tensors
        lent = {} if lender is None else lender._lanes
        self._source = source
        self._low_rank: Mapping[str, LowRank] = {}
        self._owned: object = None
        self._tensors: dict[str, Tensor] = {}
        self.sources: set[str] = set()
        self._lanes: dict[str, npt.NDArray[np.uint8]] = {}
        for name, shape in {**shapes, **(optional or {})}.items():
            source_name = source.name_of(name, model.tensors) if source else name
            tensor = borrowed[name] if name in borrowed else model.tensors.get(source_name)
            if tensor is None:
                if name in shapes:
                    raise BadFileError(
                        "tensor missing",
                        tensor=source_name,
                        expected=f"shape {shape}",
                        hint=did_you_mean(source_name, model.tensors)
                        or "the file lacks a tensor that its architecture needs",
                    )
                continue
            if source and split_name(name)[0] in source.transposed and len(tensor.shape) == 2:
                tensor = _turned(tensor)
            if tensor.shape != shape:
                raise BadFileError("wrong shape", tensor=source_name, expected=str(shape), got=str(tensor.shape))
            if tensor.dtype.name not in layout.RECORD_BYTES:
                expected = f"one of {', '.join(sorted(layout.RECORD_BYTES))}"
                raise UnsupportedError("weight type", tensor=source_name, got=tensor.dtype.name, expected=expected)
            self._tensors[name] = tensor
            self.sources.add(source_name)
            if len(shape) == 2:
                self._lanes[name] = lent[name] if name in lent else layout.lanes_bytes(tensor)
        self.base = min((a.ctypes.data for a in self._lanes.values()), default=0)

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def matrix(self, name: str) -> Weight:
        """A 2-D tensor (rows, cols), ready for `matmul` and `embed`."""
        tensor = self._tensors[name]
        rows, cols = tensor.shape
        offset = self._lanes[name].ctypes.data - self.base
        return Weight(tensor.dtype.name, rows, cols, offset, self._low_rank.get(name))

    def rows(self, name: str, start: int, count: int) -> Weight:
        """Rows `start` to `start + count` of a matrix, both multiples of 16."""
        whole = self.matrix(name)
        group_bytes = self._lanes[name].nbytes // whole.groups
        pair = whole.low_rank
        if pair is not None:
            b_offset = pair.b.offset + start * pair.b.cols * DTYPES[pair.b.dtype].block_bytes
            pair = LowRank(pair.a, Weight(pair.b.dtype, count, pair.b.cols, b_offset))
        return Weight(whole.dtype, count, whole.cols, whole.offset + start // 16 * group_bytes, pair)

    def adapted(self, low_rank: Mapping[str, LowRank], owned: object = None) -> Weights:
        """The same weights with adapters for some of the matrices, by their names; `owned`: the adapters' memory."""
        made = copy(self)
        made._low_rank, made._owned = low_rank, owned
        return made

    def vector(self, name: str) -> npt.NDArray[np.float32]:
        """A 1-D tensor as float32."""
        tensor = self._tensors[name]
        values = tensor.stored.view(np.float32) if tensor.dtype.name == "f32" else _dequantized(tensor)
        less_one = self._source is not None and split_name(name)[0] in self._source.less_one
        return values + np.float32(1) if less_one else values

    def vector_or_zero(self, name: str, length: int) -> npt.NDArray[np.float32]:
        """A 1-D tensor padded with zeros to `length`; zeros when it is absent."""
        padded = np.zeros(length, np.float32)
        if name in self:
            vector = self.vector(name)
            padded[: len(vector)] = vector
        return padded


def rows_of(model: Model, name: str, source: HuggingFace | None = None) -> int:
    """Rows of the model's matrix `name`, which `source` may call otherwise."""
    name = source.name_of(name, model.tensors) if source else name
    tensor = model.tensors.get(name)
    if tensor is None or len(tensor.shape) != 2:
        raise BadFileError("tensor missing", tensor=name, expected="a matrix")
    return tensor.shape[0]


def _dequantized(tensor: Tensor) -> npt.NDArray[np.float32]:
    return layout.dequantize(tensor.dtype, layout.plain_bytes(tensor), tensor.shape)


def _turned(tensor: Tensor) -> Tensor:
    """A matrix with rows and columns exchanged, as float32."""
    turned = np.ascontiguousarray(_dequantized(tensor).T)
    return Tensor(tensor.name, DTYPES["f32"], turned.shape, turned.reshape(-1).view(np.uint8))
