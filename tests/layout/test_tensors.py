"""Bytes and values of IR tensors in either layout."""

import numpy as np
import pytest

from modelc.dtypes import DTYPES
from modelc.errors import BadInputError
from modelc.ir import Tensor
from modelc.layout import dequantize, dequantize_rows, lanes_bytes, plain_bytes, to_lanes

ROWS, COLS = 37, 64
Q8_0 = DTYPES["q8_0"]


@pytest.fixture
def plain() -> Tensor:
    stored = np.random.default_rng(4).integers(0, 256, Q8_0.nbytes((ROWS, COLS)), np.uint8)
    stored.reshape(-1, 34)[:, 1] &= 0x3F  # finite scales
    return Tensor("w", Q8_0, (ROWS, COLS), stored)


@pytest.fixture
def lanes(plain: Tensor) -> Tensor:
    return Tensor("w", Q8_0, (ROWS, COLS), to_lanes(Q8_0, plain.stored, ROWS, COLS), "lanes")


def test_both_layouts_give_the_same_bytes(plain: Tensor, lanes: Tensor) -> None:
    assert np.array_equal(plain_bytes(lanes), plain.stored)
    assert np.array_equal(lanes_bytes(plain), lanes.stored)


def test_bytes_already_in_the_layout_are_not_copied(plain: Tensor, lanes: Tensor) -> None:
    assert plain_bytes(plain) is plain.stored
    assert lanes_bytes(lanes) is lanes.stored


@pytest.mark.parametrize(("start", "stop"), [(0, 37), (0, 1), (15, 17), (16, 32), (36, 37), (20, 20), (37, 37)])
def test_rows_have_the_values_of_the_whole(plain: Tensor, lanes: Tensor, start: int, stop: int) -> None:
    expected = dequantize(Q8_0, plain.stored, (ROWS, COLS))[start:stop]
    assert np.array_equal(dequantize_rows(plain, start, stop), expected)
    assert np.array_equal(dequantize_rows(lanes, start, stop), expected)


@pytest.mark.parametrize(("start", "stop"), [(-1, 3), (3, 2), (0, 38)])
def test_rows_outside_the_tensor_are_refused(lanes: Tensor, start: int, stop: int) -> None:
    with pytest.raises(BadInputError, match="'w'"):
        dequantize_rows(lanes, start, stop)


def test_lanes_of_a_vector_are_refused() -> None:
    vector = Tensor("bias", DTYPES["f32"], (8,), np.zeros(32, np.uint8))
    with pytest.raises(BadInputError, match="'bias'"):
        lanes_bytes(vector)
    assert plain_bytes(vector) is vector.stored


def test_a_truncated_tensor_is_refused(lanes: Tensor) -> None:
    short = Tensor("w", Q8_0, (ROWS, COLS), lanes.stored[:-1], "lanes")
    for read in (plain_bytes, lambda tensor: dequantize_rows(tensor, 30, 37)):
        with pytest.raises(BadInputError, match="wrong array"):
            read(short)
