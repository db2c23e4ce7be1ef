"""Values of stored floats and blocks."""

import gguf
import numpy as np
import numpy.typing as npt
import pytest

from modelc.dtypes import DTYPES
from modelc.layout import RECORD_BYTES, dequantize

F32 = npt.NDArray[np.float32]


def assert_same_bits(values: F32, expected: F32) -> None:
    """Equal bits, but any NaN equals any other: IEEE 754 leaves sign and payload of a product open."""
    assert values.dtype == expected.dtype == np.float32
    assert values.shape == expected.shape
    same = (values.view(np.uint32) == expected.view(np.uint32)) | (np.isnan(values) & np.isnan(expected))
    assert same.all(), np.argwhere(~same)[:5]


def half(value: float) -> bytes:
    return np.float16(value).tobytes()


@pytest.mark.parametrize("name", RECORD_BYTES)
def test_values_are_those_of_the_gguf_package(name: str) -> None:
    dtype = DTYPES[name]
    shape = (37, 5 * dtype.block_cols)
    plain = np.random.default_rng(1).integers(0, 256, dtype.nbytes(shape), np.uint8)
    with np.errstate(all="ignore"):
        expected = gguf.quants.dequantize(plain.reshape(37, -1), gguf.GGMLQuantizationType[name.upper()])
    assert_same_bits(dequantize(dtype, plain, shape), expected)


def test_every_half_is_its_float() -> None:
    halves = np.arange(65536, dtype=np.uint16)
    with np.errstate(all="ignore"):
        expected = halves.view(np.float16).astype(np.float32)
    assert_same_bits(dequantize(DTYPES["f16"], halves.view(np.uint8), (65536,)), expected)


def test_a_half_nan_keeps_its_sign_and_payload() -> None:
    halves = np.array([0x7C01, 0x7E00, 0xFC01, 0xFFFF], np.uint16)
    values = dequantize(DTYPES["f16"], halves.view(np.uint8), (4,))
    assert values.view(np.uint32).tolist() == [0x7F802000, 0x7FC00000, 0xFF802000, 0xFFFFE000]


def test_every_bfloat_is_the_upper_half_of_its_float() -> None:
    upper = np.arange(65536, dtype=np.uint32)
    plain = upper.astype(np.uint16).view(np.uint8)
    values = dequantize(DTYPES["bf16"], plain, (65536,))
    assert np.array_equal(values.view(np.uint32), upper << 16)


def test_q4_0_by_hand() -> None:
    block = half(0.5) + bytes(range(0x10, 0x20))  # low nibbles 0 to 15, high nibbles 1
    values = dequantize(DTYPES["q4_0"], np.frombuffer(block, np.uint8), (32,))
    assert values.tolist() == [0.5 * (q - 8) for q in range(16)] + [0.5 * (1 - 8)] * 16


def test_q5_1_by_hand() -> None:
    block = half(2) + half(-3) + (0x80000001).to_bytes(4, "little") + bytes([0x21]) * 16
    values = dequantize(DTYPES["q5_1"], np.frombuffer(block, np.uint8), (32,))
    assert values.tolist() == [2 * 17 - 3.0] + [2 * 1 - 3.0] * 15 + [2 * 2 - 3.0] * 15 + [2 * 18 - 3.0]


def test_q8_0_by_hand() -> None:
    block = half(0.25) + np.arange(-128, 128, 8, dtype=np.int8).tobytes()
    values = dequantize(DTYPES["q8_0"], np.frombuffer(block, np.uint8), (32,))
    assert values.tolist() == [0.25 * q for q in range(-128, 128, 8)]


def test_q6_k_by_hand() -> None:
    low, high = bytes([0x5A]) * 128, bytes([0b11_10_01_00]) * 64
    scales = np.arange(-8, 8, dtype=np.int8)
    block = low + high + scales.tobytes() + half(0.5)
    values = dequantize(DTYPES["q6_k"], np.frombuffer(block, np.uint8), (256,))
    codes = [0x0A, 0x1A, 0x25, 0x35] * 2  # of each 32 columns
    assert values.tolist() == [0.5 * int(scales[c // 16]) * (codes[c // 32] - 32) for c in range(256)]


def test_iq4_nl_by_hand() -> None:
    block = half(1) + bytes(range(16))
    values = dequantize(DTYPES["iq4_nl"], np.frombuffer(block, np.uint8), (32,))
    book = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113]
    assert values.tolist() == book + [-127] * 16


def test_zeros_keep_their_sign() -> None:
    block = half(-1) + bytes([0x88]) * 16  # every code is 8, so every value -1 * 0
    values = dequantize(DTYPES["q4_0"], np.frombuffer(block, np.uint8), (32,))
    assert (values == 0).all() and np.signbit(values).all()


@pytest.mark.parametrize("shape", [(0,), (0, 64), (2, 0)])
def test_empty_tensors_have_no_values(shape: tuple[int, ...]) -> None:
    assert dequantize(DTYPES["q4_0"], np.zeros(0, np.uint8), shape).shape == shape


def test_any_number_of_dimensions() -> None:
    plain = np.random.default_rng(2).integers(0, 256, 2 * 3 * 2 * 34, np.uint8)
    flat = dequantize(DTYPES["q8_0"], plain, (2 * 3 * 64,))
    assert_same_bits(dequantize(DTYPES["q8_0"], plain, (2, 3, 64)), flat.reshape(2, 3, 64))
