import numpy as np
import pytest

from tests.kernels.opcode_runner import run

DTYPES = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def table_of(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    table = np.zeros((3, 6), np.int64)
    table[0] = 1
    table[:, 6 - y.ndim :] = [y.shape, [by // x.itemsize for by in x.strides], [by // y.itemsize for by in y.strides]]
    return table


@pytest.mark.parametrize("size", DTYPES)
def test_elements_of_every_size_are_transposed_turned_repeated_and_spaced(size: int) -> None:
    x = np.random.default_rng(size).integers(0, 200, (3, 4, 50)).astype(DTYPES[size])
    sources = [x, x.transpose(2, 0, 1), x[:, ::-1, ::2], np.broadcast_to(x[:, :1], (3, 7, 50)), x[..., 49:]]
    for source in sources:
        for n_threads in (1, 2, 3):
            memory = np.zeros((*source.shape[:-1], 2 * source.shape[-1]), x.dtype)
            for y in (np.zeros_like(source, order="C"), memory[..., ::2]):
                run(f"array_copy.{size}", [source, y, table_of(source, y)], n_threads=n_threads)
                assert np.array_equal(y, source)
            assert not memory[..., 1::2].any()


def test_long_rows_are_shared_by_threads() -> None:
    x = np.arange(10_000, dtype=np.uint32)
    y = np.zeros_like(x)
    run("array_copy.4", [x, y, table_of(x, y)], n_threads=3)
    assert np.array_equal(x, y)
