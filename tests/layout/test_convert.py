"""Whole tensors to kernel layout and back, for every type and every size class."""

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from modelc.dtypes import DTYPES, DType
from modelc.errors import BadInputError
from modelc.layout import RECORD_BYTES, dequantize, from_lanes, lanes_nbytes, parallel, to_lanes

Bytes = npt.NDArray[np.uint8]

ROWS = (1, 15, 16, 17, 33)
Q4_0 = DTYPES["q4_0"]


def random_bytes(dtype: DType, rows: int, cols: int, seed: int = 0) -> Bytes:
    """Every bit pattern: scales that are NaN, infinite, subnormal or negative are among them."""
    return np.random.default_rng(seed).integers(0, 256, dtype.nbytes((rows, cols)), np.uint8)


@pytest.fixture(params=RECORD_BYTES)
def dtype(request: pytest.FixtureRequest) -> DType:
    return DTYPES[request.param]


def columns(dtype: DType) -> tuple[int, ...]:
    return (dtype.block_cols, 3 * dtype.block_cols) if dtype.is_block else (1, 7, 32, 100)


def test_from_lanes_undoes_to_lanes_exactly(dtype: DType) -> None:
    for rows in ROWS:
        for cols in columns(dtype):
            plain = random_bytes(dtype, rows, cols, seed=rows)
            stored = to_lanes(dtype, plain, rows, cols)
            assert stored.size == lanes_nbytes(dtype, rows, cols)
            assert np.array_equal(from_lanes(dtype, stored, rows, cols), plain), (rows, cols)


def test_from_lanes_undoes_extreme_patterns(dtype: DType) -> None:
    cols = dtype.block_cols
    for byte in (0x00, 0x55, 0x7F, 0x80, 0xAA, 0xFF):
        plain = np.full(dtype.nbytes((17, cols)), byte, np.uint8)
        assert np.array_equal(from_lanes(dtype, to_lanes(dtype, plain, 17, cols), 17, cols), plain), byte


def test_missing_rows_are_like_rows_of_zero_bytes(dtype: DType) -> None:
    cols = 2 * dtype.block_cols
    plain = random_bytes(dtype, 19, cols)
    padded = np.zeros(dtype.nbytes((32, cols)), np.uint8)
    padded[: plain.size] = plain
    assert np.array_equal(to_lanes(dtype, plain, 19, cols), to_lanes(dtype, padded, 32, cols))


def test_runs_of_sixteen_rows_join_to_the_whole(dtype: DType) -> None:
    cols = 2 * dtype.block_cols
    plain = random_bytes(dtype, 40, cols)
    row_bytes = dtype.nbytes((cols,))
    runs = [(0, 16), (16, 32), (32, 40)]
    parts = [to_lanes(dtype, plain[a * row_bytes : b * row_bytes], b - a, cols) for a, b in runs]
    assert np.array_equal(np.concatenate(parts), to_lanes(dtype, plain, 40, cols))


def test_bytes_do_not_depend_on_the_number_of_threads(dtype: DType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "MIN_THREAD_BYTES", 1)
    rows, cols = 100, 2 * dtype.block_cols
    plain = random_bytes(dtype, rows, cols)
    results = []
    for threads in range(1, 4):
        monkeypatch.setattr(parallel, "usable_cpus", functools.partial(int, threads))
        stored = to_lanes(dtype, plain, rows, cols)
        back, values = from_lanes(dtype, stored, rows, cols), dequantize(dtype, plain, (rows, cols))
        results.append((stored.tobytes(), back.tobytes(), values.tobytes()))
    assert all(result == results[0] for result in results)


def test_a_source_may_be_read_only_and_at_an_odd_address(dtype: DType) -> None:
    cols = dtype.block_cols
    plain = random_bytes(dtype, 17, cols)
    buffer = np.frombuffer(b"\0" + plain.tobytes(), np.uint8)[1:]
    stored = to_lanes(dtype, buffer, 17, cols)
    assert np.array_equal(stored, to_lanes(dtype, plain, 17, cols))
    lanes = np.frombuffer(b"\0" + stored.tobytes(), np.uint8)[1:]
    assert np.array_equal(from_lanes(dtype, lanes, 17, cols), plain)
    assert dequantize(dtype, buffer, (17, cols)).tobytes() == dequantize(dtype, plain, (17, cols)).tobytes()


def test_out_is_filled_and_returned() -> None:
    plain = random_bytes(Q4_0, 17, 64)
    out = np.full(lanes_nbytes(Q4_0, 17, 64), 7, np.uint8)
    assert to_lanes(Q4_0, plain, 17, 64, out=out) is out
    assert np.array_equal(out, to_lanes(Q4_0, plain, 17, 64))


def test_nothing_beside_out_is_written() -> None:
    nbytes = lanes_nbytes(Q4_0, 17, 64)
    around = np.full(nbytes + 128, 7, np.uint8)
    to_lanes(Q4_0, random_bytes(Q4_0, 17, 64), 17, 64, out=around[64:-64])
    assert (around[:64] == 7).all() and (around[-64:] == 7).all()


@pytest.mark.parametrize(
    "plain",
    [
        np.zeros(16 * 18 - 1, np.uint8),
        np.zeros(16 * 18 + 1, np.uint8),
        np.zeros(16 * 18, np.int8),
        np.zeros((16, 18), np.uint8),
        np.zeros(2 * 16 * 18, np.uint8)[::2],
    ],
    ids=["short", "long", "signed", "two-dimensional", "strided"],
)
def test_a_wrong_source_is_refused(plain: Bytes) -> None:
    with pytest.raises(BadInputError) as error:
        to_lanes(Q4_0, plain, 16, 32)
    assert error.value.param == "plain"
    with pytest.raises(BadInputError):
        dequantize(Q4_0, plain, (16, 32))


@pytest.mark.parametrize("nbytes", [0, 287, 289])
def test_wrong_lanes_are_refused(nbytes: int) -> None:
    with pytest.raises(BadInputError) as error:
        from_lanes(Q4_0, np.zeros(nbytes, np.uint8), 16, 32)
    assert error.value.param == "stored"


def test_a_wrong_out_is_refused() -> None:
    plain, read_only = np.zeros(16 * 18, np.uint8), np.zeros(288, np.uint8)
    read_only.flags.writeable = False
    wrong: list[Any] = [np.zeros(287, np.uint8), np.zeros(288, np.int8), read_only]
    for out in wrong:
        with pytest.raises(BadInputError) as error:
            to_lanes(Q4_0, plain, 16, 32, out=out)
        assert error.value.param == "out"


def test_types_without_the_layout_are_refused() -> None:
    with pytest.raises(BadInputError, match="i8"):
        to_lanes(DTYPES["i8"], np.zeros(512, np.uint8), 16, 32)
    with pytest.raises(BadInputError, match="i8"):
        dequantize(DTYPES["i8"], np.zeros(512, np.uint8), (16, 32))
