import numpy as np

from modelc.kernels.codebook import CODEBOOK, look_up
from modelc.kernels.jit import kernel
from modelc.kernels.pointers import i32_ptr
from modelc.kernels.simd import load_bytes, store_bytes
from modelc.layout.codebook import CODEBOOK as VALUES
from tests.kernels.opcode_runner import run


@kernel
def look_ups(I, E, tid, nth):
    """I: 2 vectors, 3 codes, 4 out."""
    for i in range(0, 16 * I[2], 16):
        store_bytes(i32_ptr(I[4]), i, look_up(load_bytes(i32_ptr(I[3]), i)))


def test_every_code_at_every_byte_is_looked_up() -> None:
    codes = np.array([np.roll(np.arange(64) % 16, shift) for shift in range(16)], np.uint8)
    out = np.zeros_like(codes)
    run(look_ups, [16, codes, out])
    assert np.array_equal(out, np.array(VALUES)[codes] + 128)


def test_kernels_and_layout_have_the_same_codebook() -> None:
    assert [value - 128 for value in CODEBOOK] == list(VALUES)
