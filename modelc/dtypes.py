"""Element and block types of tensors: one table from which every size in modelc comes.

Block layouts and type numbers: ggml's `ggml-common.h` and `ggml.h` as of GGUF version 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from modelc.errors import BadInputError


@dataclass(frozen=True, slots=True)
class DType:
    """How the elements of a tensor are stored.

    Attributes:
        name: Lower-case name (`f16`, `q4_k`).
        block_cols: Elements of one block along the last dimension; 1 for plain types.
        block_bytes: Bytes of one block.
        ggml_id: Type number in a GGUF file; None where GGUF has no such type.
        numpy: NumPy's little-endian name of a plain type; None for block types and for floats that NumPy lacks.
    """

    name: str
    block_cols: int
    block_bytes: int
    ggml_id: int | None
    numpy: str | None

    @property
    def is_block(self) -> bool:
        """True for quantized types, whose scales stand beside the values in blocks."""
        return self.block_cols > 1

    def nbytes(self, shape: tuple[int, ...]) -> int:
        """Exact size in bytes of a tensor of `shape` (outermost dimension first) in the source's own layout.

        Raises:
            BadInputError: A negative dimension, or a last dimension that is not whole blocks.
        """
        cols = shape[-1] if shape else 1
        if cols % self.block_cols or any(dim < 0 for dim in shape):
            raise BadInputError(
                f"wrong shape for {self.name}",
                param="shape",
                expected=f"no negative dimension, the last a multiple of {self.block_cols}",
                got=list(shape),
            )
        return prod(shape) // self.block_cols * self.block_bytes


# name, block_cols, block_bytes, ggml_id, numpy
DTYPES: dict[str, DType] = {
    dtype.name: dtype
    for dtype in (
        DType("f64", 1, 8, 28, "<f8"),
        DType("f32", 1, 4, 0, "<f4"),
        DType("f16", 1, 2, 1, "<f2"),
        DType("bf16", 1, 2, 30, None),
        DType("f8_e4m3", 1, 1, None, None),
        DType("f8_e5m2", 1, 1, None, None),
        DType("i64", 1, 8, 27, "<i8"),
        DType("i32", 1, 4, 26, "<i4"),
        DType("i16", 1, 2, 25, "<i2"),
        DType("i8", 1, 1, 24, "|i1"),
        DType("u8", 1, 1, None, "|u1"),
        DType("bool", 1, 1, None, "|b1"),
        DType("q4_0", 32, 18, 2, None),
        DType("q4_1", 32, 20, 3, None),
        DType("q5_0", 32, 22, 6, None),
        DType("q5_1", 32, 24, 7, None),
        DType("q8_0", 32, 34, 8, None),
        DType("q2_k", 256, 84, 10, None),
        DType("q3_k", 256, 110, 11, None),
        DType("q4_k", 256, 144, 12, None),
        DType("q5_k", 256, 176, 13, None),
        DType("q6_k", 256, 210, 14, None),
        DType("iq4_nl", 32, 18, 20, None),
        DType("iq4_xs", 256, 136, 23, None),
    )
}

DTYPES_BY_GGML_ID: dict[int, DType] = {dtype.ggml_id: dtype for dtype in DTYPES.values() if dtype.ggml_id is not None}
