import numpy as np

from modelc.kernels.dot import (
    biased_start,
    dot_biased,
    dot_narrow,
    dot_symmetric,
    narrow_end,
    narrow_start,
    symmetric_start,
)
from modelc.kernels.jit import kernel
from modelc.kernels.pointers import i32_ptr
from modelc.kernels.simd import load_bytes, splat_i32, store_bytes
from tests.kernels.opcode_runner import run

i32 = np.int32
FOUR_BITS, SIX_BITS = i32(0x0F0F0F0F), i32(0x3F3F3F3F)


@kernel
def dots(I, E, tid, nth):
    """I: 2 vectors, 3 start, 4 weights, 5 activations, 6 sums of their fours, 7 to 10 out."""
    for i in range(0, 16 * I[2], 16):
        start, w, x = load_bytes(i32_ptr(I[3]), i), load_bytes(i32_ptr(I[4]), i), load_bytes(i32_ptr(I[5]), i)
        four, six = narrow_start(start), narrow_start(start)
        for _ in range(8):
            four = dot_narrow(four, w & splat_i32(FOUR_BITS), x)
        for _ in range(2):
            six = dot_narrow(six, w & splat_i32(SIX_BITS), x)
        store_bytes(i32_ptr(I[7]), i, narrow_end(four, start))
        store_bytes(i32_ptr(I[8]), i, narrow_end(six, start))
        sums = load_bytes(i32_ptr(I[6]), i)
        store_bytes(i32_ptr(I[9]), i, dot_biased(start + biased_start(sums), w, x))
        store_bytes(i32_ptr(I[10]), i, dot_symmetric(start + symmetric_start(sums), w, x))


def all_dots(start: np.ndarray, w: np.ndarray, x: np.ndarray) -> list[np.ndarray]:
    """start + 8 products with 4 bits of w, + 2 with 6 bits, + one with w less 128; the last again without -128 in x."""
    out = [np.zeros(start.size, i32) for _ in range(4)]
    run(dots, [start.size // 16, start, w, x, x.reshape(-1, 4).sum(1, dtype=i32), *out])
    symmetric = np.maximum(x, np.int8(-127))
    unused = [np.zeros(start.size, i32) for _ in range(3)]
    run(dots, [start.size // 16, start, w, symmetric, symmetric.reshape(-1, 4).sum(1, dtype=i32), *unused, out[3]])
    return out


def check_dots(start: np.ndarray, w: np.ndarray, x: np.ndarray) -> None:
    wide, symmetric = w.astype(np.int64), np.maximum(x, np.int8(-127))
    factors = ((8 * (wide & 15), x), (2 * (wide & 63), x), (wide - 128, x), (wide - 128, symmetric))
    for found, (weights, activations) in zip(all_dots(start, w, x), factors, strict=True):
        exact = (weights * activations.astype(np.int64)).reshape(-1, 4).sum(1)
        assert np.array_equal(found, (start + exact).astype(i32))


def test_random_bytes_have_the_exact_dot_product() -> None:
    rng = np.random.default_rng(1)
    start = rng.integers(-(2**30), 2**30, 4096, i32)
    check_dots(start, rng.integers(0, 256, 16384, np.uint8), rng.integers(-128, 128, 16384, np.int8))


def test_extreme_bytes_do_not_saturate() -> None:
    # 255 * 127 * 2, 255 * -128 * 2 and -128 * -128 * 2 are beyond int16: a sum of two in 16 bits is wrong here.
    w = np.tile(np.array([255, 255, 255, 255, 128, 128, 127, 255, 0, 0, 0, 1], np.uint8), 64)
    for x in ([127, 127, 127, 127], [-128, -128, -128, -128], [127, -128, 127, -128], [-127, -1, 0, 1]):
        check_dots(np.zeros(192, i32), w, np.tile(np.array(x, np.int8), 192))


def test_the_sum_wraps_around_like_int32() -> None:
    start = np.full(16, 2**31 - 1, i32)
    check_dots(start, np.ones(64, np.uint8), np.ones(64, np.int8))
