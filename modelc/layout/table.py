"""Which tensors have the kernel layout "lanes", and how many bytes they take in it.

Rows stand in groups of 16, a row a SIMD lane; the last group is filled up with rows of zero bytes. A group is a
sequence of records in ascending order of columns, a record all that the 16 rows have in the columns of one block. How a
block becomes its lane of a record is drawn in the type's own file.
"""

from __future__ import annotations

from modelc.dtypes import DType
from modelc.errors import BadInputError

LAYOUT_VERSION = 1  # changes with every byte position below or in a type's file
LANES = 16  # rows of a group

# Bytes of a record: 16 rows by the columns of one block (one column for floats).
RECORD_BYTES: dict[str, int] = {
    "f32": 64,
    "f16": 32,
    "bf16": 32,
    "q4_0": 288,
    "q4_1": 320,
    "q5_0": 352,
    "q5_1": 384,
    "q8_0": 544,
    "q2_k": 1344,
    "q3_k": 1824,
    "q4_k": 2368,
    "q5_k": 2880,
    "q6_k": 3360,
    "iq4_nl": 288,
    "iq4_xs": 2208,
}


def is_lanes(dtype: DType, shape: tuple[int, ...]) -> bool:
    """Whether a tensor of `dtype` and `shape` has the layout "lanes"; every other tensor is stored plain."""
    return dtype.name in RECORD_BYTES and len(shape) == 2 and min(shape) > 0 and shape[1] % dtype.block_cols == 0


def lanes_nbytes(dtype: DType, rows: int, cols: int) -> int:
    """Size in bytes of a (rows, cols) tensor in lanes, padding included.

    Raises:
        BadInputError: The tensor has no such layout (see `is_lanes`).
    """
    if not is_lanes(dtype, (rows, cols)):
        raise BadInputError(
            f"{dtype.name} has no kernel layout for this shape",
            param="shape",
            expected=f"rows, whole blocks of {dtype.block_cols} columns, a type among {', '.join(RECORD_BYTES)}",
            got=[rows, cols],
        )
    return -(-rows // LANES) * (cols // dtype.block_cols) * RECORD_BYTES[dtype.name]
