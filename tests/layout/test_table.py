"""Which tensors have the kernel layout, and their sizes in it."""

import subprocess
import sys

import pytest

from modelc.dtypes import DTYPES
from modelc.errors import BadInputError
from modelc.layout import is_lanes, lanes_nbytes

# Bytes of a record and the columns it covers, written out from the record maps of layout version 1.
RECORDS = {
    "f32": (1, 16 * 4),
    "f16": (1, 16 * 2),
    "bf16": (1, 16 * 2),
    "q4_0": (32, 32 + 256),
    "q4_1": (32, 64 + 256),
    "q5_0": (32, 32 + 256 + 64),
    "q5_1": (32, 64 + 256 + 64),
    "q8_0": (32, 32 + 512),
    "q2_k": (256, 64 + 256 + 8 * 128),
    "q3_k": (256, 32 + 256 + 8 * (128 + 64)),
    "q4_k": (256, 64 + 128 + 128 + 8 * 256),
    "q5_k": (256, 64 + 128 + 128 + 8 * (256 + 64)),
    "q6_k": (256, 32 + 256 + 8 * (256 + 128)),
    "iq4_nl": (32, 32 + 256),
    "iq4_xs": (256, 32 + 128 + 8 * 256),
}


@pytest.mark.parametrize("name", RECORDS)
def test_size_is_whole_groups_of_sixteen_rows(name: str) -> None:
    cols, record_bytes = RECORDS[name]
    dtype = DTYPES[name]
    assert lanes_nbytes(dtype, 1, cols) == record_bytes
    assert lanes_nbytes(dtype, 16, cols) == record_bytes
    assert lanes_nbytes(dtype, 17, 3 * cols) == 2 * 3 * record_bytes


def test_matrices_of_the_table_are_lanes() -> None:
    assert {name for name, dtype in DTYPES.items() if is_lanes(dtype, (3, 512))} == set(RECORDS)


@pytest.mark.parametrize("shape", [(), (64,), (2, 3, 64), (0, 64), (64, 0)])
def test_other_shapes_are_not(shape: tuple[int, ...]) -> None:
    assert not is_lanes(DTYPES["f32"], shape)
    assert not is_lanes(DTYPES["q4_0"], shape)


def test_rows_that_are_not_whole_blocks_are_not() -> None:
    assert is_lanes(DTYPES["f16"], (5, 33))
    assert not is_lanes(DTYPES["q8_0"], (5, 33))
    assert not is_lanes(DTYPES["q4_k"], (5, 288))


@pytest.mark.parametrize(("name", "rows", "cols"), [("i8", 16, 32), ("q4_0", 16, 33), ("f32", 0, 4), ("f32", -16, 4)])
def test_no_size_without_the_layout(name: str, rows: int, cols: int) -> None:
    with pytest.raises(BadInputError, match=name):
        lanes_nbytes(DTYPES[name], rows, cols)


def test_importing_the_package_does_not_load_numba() -> None:
    script = "import sys, modelc.layout; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
