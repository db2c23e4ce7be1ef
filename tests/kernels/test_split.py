import numpy as np
import pytest

from modelc.kernels import env
from modelc.kernels.jit import kernel
from modelc.kernels.pointers import i64_ptr
from modelc.kernels.split import ROW_STEP, private_row, split, split_groups, split_rows
from tests.kernels.opcode_runner import run


@kernel
def shares(I, E, tid, nth):
    """I: 2 n, 3 out (threads, 7)."""
    out = i64_ptr(I[3])
    out[7 * tid], out[7 * tid + 1] = split(I[2], tid, nth)
    out[7 * tid + 2], out[7 * tid + 3] = split_rows(E, I[2], tid, nth)
    out[7 * tid + 4] = private_row(E, tid)
    out[7 * tid + 5], out[7 * tid + 6] = split_groups(I[2], tid, nth)


def shares_of(n: int, n_rows: int, n_threads: int) -> np.ndarray:
    out = np.full((n_threads, 7), -1, np.int64)
    run(shares, [n, out], {env.N_ROWS: n_rows}, n_threads)
    return out


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 9, 64, 513])
def test_threads_share_everything_once_and_nearly_equally(n: int) -> None:
    for n_threads in (1, 2, 3, 7):
        parts = shares_of(n, 2, n_threads)[:, :2]
        assert [i for start, stop in parts for i in range(start, stop)] == list(range(n))
        sizes = parts[:, 1] - parts[:, 0]
        assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 9, 64, 513])
def test_rows_are_shared_once_in_whole_steps(n: int) -> None:
    for n_threads in (1, 2, 3, 7):
        parts = shares_of(n, 2, n_threads)[:, 2:4]
        assert [i for start, stop in parts for i in range(start, stop)] == list(range(n))
        assert all(start % ROW_STEP == 0 for start, stop in parts if stop > start)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 9, 64, 513])
def test_groups_of_columns_are_shared_once_in_pairs(n: int) -> None:
    for n_threads in (1, 2, 3, 7):
        parts = shares_of(n, 1, n_threads)[:, 5:]
        assert [i for start, stop in parts for i in range(start, stop)] == list(range(n))
        assert all(start % 2 == 0 for start, stop in parts if stop > start)


def test_in_a_one_row_batch_every_thread_has_the_row_in_a_copy_of_its_own() -> None:
    assert shares_of(1, 1, 3)[:, 2:5].tolist() == [[0, 1, tid] for tid in range(3)]
    assert shares_of(9, 9, 3)[:, 4].tolist() == [0, 0, 0]
