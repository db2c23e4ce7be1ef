import numpy as np

from modelc.kernels.dot import CODEBOOK, dot_u8i8, look_up
from modelc.kernels.jit import kernel
from modelc.kernels.pointers import i32_ptr
from modelc.kernels.simd import load_bytes, store_bytes
from modelc.layout.codebook import CODEBOOK as VALUES
from tests.kernels.opcode_runner import run

i32 = np.int32


@kernel
def dots(I, E, tid, nth):
    """I: 2 vectors, 3 start, 4 weights, 5 activations, 6 out."""
    for i in range(0, 16 * I[2], 16):
        w, x = load_bytes(i32_ptr(I[4]), i), load_bytes(i32_ptr(I[5]), i)
        store_bytes(i32_ptr(I[6]), i, dot_u8i8(load_bytes(i32_ptr(I[3]), i), w, x))


def check_dots(start: np.ndarray, w: np.ndarray, x: np.ndarray) -> None:
    out = np.zeros(start.size, i32)
    run(dots, [start.size // 16, start, w, x, out])
    exact = (w.astype(np.int64) * x.astype(np.int64)).reshape(-1, 4).sum(1)
    assert np.array_equal(out, (start + exact).astype(i32))


def test_random_bytes_have_the_exact_dot_product() -> None:
    rng = np.random.default_rng(1)
    start = rng.integers(-(2**30), 2**30, 4096, i32)
    check_dots(start, rng.integers(0, 256, 16384, np.uint8), rng.integers(-128, 128, 16384, np.int8))


def test_extreme_bytes_do_not_saturate() -> None:
    # 255 * 127 * 2 and 255 * -128 * 2 are beyond int16: an addition of pairs that saturates is wrong here.
    w = np.tile(np.array([255, 255, 255, 255, 128, 128, 127, 255], np.uint8), 64)
    for x in ([127, 127, 127, 127], [-128, -128, -128, -128], [127, -128, 127, -128], [-127, -1, 0, 1]):
        check_dots(np.zeros(128, i32), w, np.tile(np.array(x, np.int8), 128))


def test_the_sum_wraps_around_like_int32() -> None:
    start = np.full(16, 2**31 - 1, i32)
    check_dots(start, np.ones(64, np.uint8), np.ones(64, np.int8))


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
