import gguf
import numpy as np
import pytest

from modelc.dtypes import DTYPES, DTYPES_BY_GGML_ID
from modelc.errors import BadInputError

NAMES = (
    "f64 f32 f16 bf16 f8_e4m3 f8_e5m2 i64 i32 i16 i8 u8 bool "
    "q4_0 q4_1 q5_0 q5_1 q8_0 q2_k q3_k q4_k q5_k q6_k iq4_nl iq4_xs"
)


def test_the_table_has_every_type_of_the_formats() -> None:
    assert list(DTYPES) == NAMES.split()
    assert all(name == dtype.name for name, dtype in DTYPES.items())


@pytest.mark.parametrize("dtype", DTYPES_BY_GGML_ID.values(), ids=lambda dtype: dtype.name)
def test_numbers_and_block_sizes_are_those_of_ggml(dtype) -> None:
    kind = gguf.GGMLQuantizationType[dtype.name.upper()]
    assert dtype.ggml_id == kind.value
    assert (dtype.block_cols, dtype.block_bytes) == gguf.GGML_QUANT_SIZES[kind]


@pytest.mark.parametrize("dtype", [d for d in DTYPES.values() if d.numpy], ids=lambda dtype: dtype.name)
def test_numpy_names_have_the_same_size(dtype) -> None:
    assert np.dtype(dtype.numpy).itemsize == dtype.block_bytes
    assert not dtype.is_block


@pytest.mark.parametrize(
    ("name", "shape", "nbytes"),
    [
        ("f32", (), 4),
        ("f16", (3, 5), 30),
        ("bool", (7,), 7),
        ("q4_0", (2, 64), 72),
        ("q4_1", (576, 1536), 576 * 48 * 20),
        ("q6_k", (3, 256), 630),
        ("iq4_xs", (1, 512), 272),
        ("q8_0", (1 << 40, 1 << 40), (1 << 75) * 34),
        ("q8_0", (0, 32), 0),
    ],
)
def test_nbytes_is_exact(name: str, shape: tuple[int, ...], nbytes: int) -> None:
    assert DTYPES[name].nbytes(shape) == nbytes


@pytest.mark.parametrize(("name", "shape"), [("q4_0", (32, 33)), ("q4_k", (32,)), ("q8_0", ()), ("f32", (-1, 2))])
def test_nbytes_refuses_parts_of_blocks_and_negative_sizes(name: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(BadInputError, match=f"wrong shape for {name}.*multiple of"):
        DTYPES[name].nbytes(shape)
