"""A model's tensors as an architecture asks for them: matrices in place, vectors as float32 constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from modelc import layout
from modelc.dtypes import DTYPES
from modelc.errors import BadFileError, UnsupportedError, did_you_mean
from modelc.ir import Model, Tensor
from modelc.program import Weight

Shapes = Mapping[str, tuple[int, ...]]
Names = Callable[[str], str]


class Weights:
    """The tensors of `model` under the architecture's own names.

    Attributes:
        base: the address that `Weight.offset` counts from: of the lowest matrix in memory.

    Args:
        model: The source.
        shapes: Every tensor that must be there, with its shape.
        optional: Tensors that may be there.
        names: What the source calls a tensor.
        transposed: Whether the source keeps a matrix as (inputs, outputs): it is turned, in memory.
        lender: Weights whose tensors of the same names are used, where they are.
    """

    def __init__(
        self,
        model: Model,
        shapes: Shapes,
        optional: Shapes | None = None,
        names: Names = lambda name: name,
        transposed: Callable[[str], bool] = lambda name: False,
        lender: Weights | None = None,
    ) -> None:
        borrowed = {} if lender is None else lender._tensors
        lent = {} if lender is None else lender._lanes
        self._tensors: dict[str, Tensor] = {}
        self._used: set[str] = set()  # the source's names
        self._lanes: dict[str, npt.NDArray[np.uint8]] = {}
        for name, shape in {**shapes, **(optional or {})}.items():
            source_name = names(name)
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
            if transposed(name) and len(tensor.shape) == 2:
                tensor = _turned(tensor)
            if tensor.shape != shape:
                raise BadFileError("wrong shape", tensor=source_name, expected=str(shape), got=str(tensor.shape))
            if tensor.dtype.name not in layout.RECORD_BYTES:
                expected = f"one of {', '.join(sorted(layout.RECORD_BYTES))}"
                raise UnsupportedError("weight type", tensor=source_name, got=tensor.dtype.name, expected=expected)
            self._tensors[name] = tensor
            self._used.add(source_name)
            if len(shape) == 2:
                self._lanes[name] = lent[name] if name in lent else layout.lanes_bytes(tensor)
        self.base = min((a.ctypes.data for a in self._lanes.values()), default=0)

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def uses(self, source_name: str) -> bool:
        """Whether the source's tensor of that name is one of these."""
        return source_name in self._used

    def matrix(self, name: str) -> Weight:
        """A 2-D tensor (rows, cols), ready for `matmul` and `embed`."""
        tensor = self._tensors[name]
        rows, cols = tensor.shape
        return Weight(tensor.dtype.name, rows, cols, self._lanes[name].ctypes.data - self.base)

    def vector(self, name: str) -> npt.NDArray[np.float32]:
        """A 1-D tensor as float32."""
        tensor = self._tensors[name]
        if tensor.dtype.name == "f32":
            return tensor.stored.view(np.float32)
        return layout.dequantize(tensor.dtype, layout.plain_bytes(tensor), tensor.shape)

    def vector_or_zero(self, name: str, length: int) -> npt.NDArray[np.float32]:
        """A 1-D tensor padded with zeros to `length`; zeros when it is absent."""
        padded = np.zeros(length, np.float32)
        if name in self:
            vector = self.vector(name)
            padded[: len(vector)] = vector
        return padded


def rows_of(model: Model, name: str, expected: str) -> int:
    """Rows of the source's matrix `name`; `expected` describes it where it is missing."""
    tensor = model.tensors.get(name)
    if tensor is None or len(tensor.shape) != 2:
        raise BadFileError("tensor missing", tensor=name, expected=expected)
    return tensor.shape[0]


def _turned(tensor: Tensor) -> Tensor:
    """A matrix with rows and columns exchanged, as float32."""
    values = layout.dequantize(tensor.dtype, layout.plain_bytes(tensor), tensor.shape)
    turned = np.ascontiguousarray(values.T)
    return Tensor(tensor.name, DTYPES["f32"], turned.shape, turned.reshape(-1).view(np.uint8))
