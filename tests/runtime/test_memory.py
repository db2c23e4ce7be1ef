from pathlib import Path

import numpy as np
import pytest

from modelc.runtime.memory import HUGE_PAGE, allocate


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int64])
@pytest.mark.parametrize("n", [0, 1, 17, 1000, HUGE_PAGE + 5])
def test_memory_is_zero_writable_and_aligned(n: int, dtype: type) -> None:
    array = allocate(n, dtype)
    assert (array.dtype, array.shape) == (np.dtype(dtype), (n,))
    assert array.ctypes.data % (HUGE_PAGE if array.nbytes >= HUGE_PAGE else 64) == 0
    assert not array.any()
    array[:] = 1
    assert array.all()


def test_arrays_do_not_share_memory() -> None:
    a, b = allocate(100, np.uint8), allocate(100, np.uint8)
    a[:] = 1
    assert not b.any()


def test_memory_lives_as_long_as_a_view_of_it() -> None:
    view = allocate(1 << 20, np.uint8)[5:10]
    view[:] = 7
    assert view.tolist() == [7] * 5


def test_memory_that_is_not_touched_is_not_used() -> None:
    statm = Path("/proc/self/statm")
    if not statm.exists():
        pytest.skip("no /proc to read the resident size from")
    before = int(statm.read_text().split()[1])
    array = allocate(1 << 30, np.uint8)
    grown_pages = int(statm.read_text().split()[1]) - before
    assert grown_pages * 4096 < 1 << 26
    assert array.size == 1 << 30
