import numpy as np
import pytest

from modelc.kernels.blend import blend
from modelc.kernels.jit import kernel
from modelc.kernels.pointers import f32_ptr
from modelc.kernels.simd import load_f32, store_f32
from tests.kernels.opcode_runner import run, unwritten


@kernel
def blended(I, E, tid, nth):
    low, high = load_f32(f32_ptr(I[3]), 0), load_f32(f32_ptr(I[4]), 0)
    store_f32(f32_ptr(I[5]), 0, blend(I[2], low, high))


@pytest.mark.parametrize("first", [*range(-2, 19), 1 << 31, 1 << 40, -(1 << 31), -(1 << 40)])
def test_lanes_below_the_boundary_are_the_first_vector_s(first: int) -> None:
    low, high = np.arange(16, dtype=np.float32), -np.arange(16, dtype=np.float32) - 1
    out = unwritten(16)
    run(blended, [first, low, high, out])
    assert out.tolist() == np.where(np.arange(16) < first, low, high).tolist()
