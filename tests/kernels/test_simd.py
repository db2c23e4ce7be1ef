import numpy as np
import pytest

from modelc.kernels.jit import kernel
from modelc.kernels.pointers import f32_ptr, i8_ptr, i16_ptr, i32_ptr, u8_ptr
from modelc.kernels.simd import (
    bits_of,
    even_quarters,
    fma,
    from_bits,
    high_halves,
    lane,
    load_bf16,
    load_bytes,
    load_f16,
    load_f32,
    load_i8,
    load_u8,
    low_halves,
    max_lanes,
    maximum,
    minimum,
    odd_quarters,
    prefetch,
    splat_at,
    splat_bytes4,
    splat_f32,
    splat_first_half,
    splat_i32,
    splat_second_half,
    splat_zero,
    store_bytes,
    store_f16,
    store_f32,
    store_i8,
    sum_lanes,
    sum_lanes_i32,
    swap_fours_of,
    swap_pairs_of,
    swap_twos_of,
    tile_f32,
    tile_i32,
    to_f32,
    zero_below,
)
from tests.kernels import float_math
from tests.kernels.float_math import assert_same_bits, tricky_floats
from tests.kernels.opcode_runner import run, unwritten

f32 = np.float32
i32 = np.int32


def whole_vectors(values: np.ndarray) -> np.ndarray:
    return np.resize(values, (values.size + 15) // 16 * 16)


# ---------------------------------------------------------------------------------------------------- conversions


@kernel
def convert(I, E, tid, nth):
    """I: 2 n, 3 uint16 in, 4 as halves, 5 as bfloats; 6 m, 7 float32 in, 8 as half bits."""
    for i in range(0, I[2], 16):
        store_f32(f32_ptr(I[4]), i, load_f16(i16_ptr(I[3]), i))
        store_f32(f32_ptr(I[5]), i, load_bf16(i16_ptr(I[3]), i))
    for i in range(0, I[6], 16):
        store_f16(i16_ptr(I[8]), i, load_f32(f32_ptr(I[7]), i))


@pytest.fixture(scope="module")
def conversions() -> dict[str, np.ndarray]:
    words = np.arange(65536, dtype=np.uint16)
    floats = whole_vectors(tricky_floats(100_000, 3))
    a = {"words": words, "floats": floats, "from_half": unwritten(65536), "from_bfloat": unwritten(65536)}
    a["to_half"] = np.zeros(floats.size, np.uint16)
    run(convert, [65536, words, a["from_half"], a["from_bfloat"], floats.size, floats, a["to_half"]])
    return a


def test_every_half_becomes_its_float(conversions: dict[str, np.ndarray]) -> None:
    with np.errstate(invalid="ignore"):
        expected = conversions["words"].view(np.float16).astype(f32)
    assert_same_bits(conversions["from_half"], expected)


def test_every_bfloat_is_the_upper_half_of_its_float(conversions: dict[str, np.ndarray]) -> None:
    expected = conversions["words"].astype(np.uint32) << 16
    assert np.array_equal(conversions["from_bfloat"].view(np.uint32), expected)


def test_floats_are_rounded_to_the_nearest_half_ties_to_even(conversions: dict[str, np.ndarray]) -> None:
    with np.errstate(all="ignore"):
        expected = conversions["floats"].astype(np.float16)
    got = conversions["to_half"].view(np.float16)
    same = (got.view(np.uint16) == expected.view(np.uint16)) | (np.isnan(got) & np.isnan(expected))
    assert same.all(), conversions["floats"][~same][:5]


# ---------------------------------------------------------------------------------------------- float operations


@kernel
def float_operations(I, E, tid, nth):
    """I: 2 n, 3 x, 4 y, 5 z, 6 out (13, n)."""
    n = I[2]
    out = f32_ptr(I[6])
    for i in range(0, n, 16):
        x = load_f32(f32_ptr(I[3]), i)
        y = load_f32(f32_ptr(I[4]), i)
        z = load_f32(f32_ptr(I[5]), i)
        store_f32(out, i, x + y)
        store_f32(out, n + i, x - y)
        store_f32(out, 2 * n + i, x * y)
        store_f32(out, 3 * n + i, x / y)
        store_f32(out, 4 * n + i, fma(x, y, z))
        store_f32(out, 5 * n + i, maximum(x, y))
        store_f32(out, 6 * n + i, minimum(x, y))
        store_f32(out, 7 * n + i, zero_below(x, y, z))
        store_f32(out, 8 * n + i, splat_f32(lane(x, 5)))
        store_f32(out, 9 * n + i, from_bits(bits_of(x)))
        store_f32(out, 10 * n + i, splat_f32(sum_lanes(x)))
        store_f32(out, 11 * n + i, splat_f32(max_lanes(x)))
        store_f32(out, 12 * n + i, splat_at(f32_ptr(I[3]), i + 7))


FLOAT_OPERATIONS = {
    "add": lambda x, y, z: x + y,
    "subtract": lambda x, y, z: x - y,
    "multiply": lambda x, y, z: x * y,
    "divide": lambda x, y, z: x / y,
    "fma": float_math.fma,
    "maximum": lambda x, y, z: np.where(x > y, x, y),
    "minimum": lambda x, y, z: np.where(x < y, x, y),
    "zero_below": lambda x, y, z: np.where(x < y, f32(0), z),
    "lane": lambda x, y, z: np.repeat(x[5::16], 16),
    "bits there and back": lambda x, y, z: x,
    "sum_lanes": lambda x, y, z: np.repeat(float_math.sum_lanes(x.reshape(-1, 16)), 16),
    "max_lanes": lambda x, y, z: np.repeat(max_tree(x.reshape(-1, 16)), 16),
    "splat_at": lambda x, y, z: np.repeat(x[7::16], 16),
}


def max_tree(x: np.ndarray) -> np.ndarray:
    for n in (8, 4, 2, 1):
        x = np.where(x[:, :n] > x[:, n : 2 * n], x[:, :n], x[:, n : 2 * n])
    return x[:, 0]


@pytest.fixture(scope="module")
def float_results() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    pool = tricky_floats(3000, 5)
    operands = np.concatenate([rng.standard_normal((3, 4000), f32), rng.choice(pool, (3, 8000))], 1)
    out = unwritten(len(FLOAT_OPERATIONS), operands.shape[1])
    run(float_operations, [operands.shape[1], *operands, out])
    return operands, out


@pytest.mark.parametrize("name", FLOAT_OPERATIONS)
def test_float_operations_are_those_of_ieee_754(name: str, float_results: tuple[np.ndarray, np.ndarray]) -> None:
    operands, out = float_results
    with np.errstate(all="ignore"):
        expected = FLOAT_OPERATIONS[name](*operands)
    assert_same_bits(out[list(FLOAT_OPERATIONS).index(name)], expected)


# ------------------------------------------------------------------------------------------------------- shuffles


@kernel
def shuffles(I, E, tid, nth):
    """I: 2 float32 x, 3 y, 4 out (9, 16), 5 the same for int32 words."""
    x, y, out = load_f32(f32_ptr(I[2]), 0), load_f32(f32_ptr(I[3]), 0), f32_ptr(I[4])
    store_f32(out, 0, low_halves(x, y))
    store_f32(out, 16, high_halves(x, y))
    store_f32(out, 32, even_quarters(x, y))
    store_f32(out, 48, odd_quarters(x, y))
    store_f32(out, 64, swap_pairs_of(x, x))
    store_f32(out, 80, swap_twos_of(x, x))
    store_f32(out, 96, swap_fours_of(x, x))
    store_f32(out, 112, splat_first_half(x, x))
    store_f32(out, 128, splat_second_half(x, x))
    a, b = load_bytes(f32_ptr(I[2]), 0), load_bytes(f32_ptr(I[3]), 0)
    store_bytes(i32_ptr(I[5]), 0, odd_quarters(a, b))
    store_bytes(i32_ptr(I[5]), 16, splat_i32(lane(b, 9)))


def test_shuffles_choose_their_lanes() -> None:
    x, y = np.arange(16, dtype=f32), np.arange(100, 116, dtype=f32)
    out, words = unwritten(9, 16), np.zeros((2, 16), i32)
    run(shuffles, [x, y, out, words])
    i = np.arange(16)
    expected = [
        [*x[:8], *y[:8]],
        [*x[8:], *y[8:]],
        [*x[0:4], *x[8:12], *y[0:4], *y[8:12]],
        [*x[4:8], *x[12:16], *y[4:8], *y[12:16]],
        *(x[i ^ distance] for distance in (1, 2, 4)),
        [x[0]] * 16,
        [x[8]] * 16,
    ]
    assert np.array_equal(out, expected)
    assert np.array_equal(words, [out[3].view(i32), [y.view(i32)[9]] * 16])


# ---------------------------------------------------------------------------------------------- integer operations


@kernel
def integer_operations(I, E, tid, nth):
    """I: 2 vectors, 3 x, 4 y, 5 shifts, 6 out (13, 16 vectors) int32, 7 out float32, 8 out int8."""
    n = 16 * I[2]
    x_words, y_words, shifts, out = i32_ptr(I[3]), i32_ptr(I[4]), i32_ptr(I[5]), i32_ptr(I[6])
    for i in range(0, n, 16):
        x = load_bytes(x_words, i)
        y = load_bytes(y_words, i)
        shift = load_bytes(shifts, i)
        store_bytes(out, i, x + y)
        store_bytes(out, n + i, x - y)
        store_bytes(out, 2 * n + i, x * y)
        store_bytes(out, 3 * n + i, x & y)
        store_bytes(out, 4 * n + i, x | y)
        store_bytes(out, 5 * n + i, x << shift)
        store_bytes(out, 6 * n + i, x >> shift)
        store_bytes(out, 7 * n + i, splat_i32(sum_lanes_i32(x)))
        store_bytes(out, 8 * n + i, load_u8(u8_ptr(I[3]), i))
        store_bytes(out, 9 * n + i, load_i8(i8_ptr(I[3]), i))
        store_bytes(out, 10 * n + i, splat_bytes4(u8_ptr(I[3]), 4 * i + 1))
        store_f32(f32_ptr(I[7]), i, to_f32(x))
        store_i8(i8_ptr(I[8]), i, x)


INTEGER_OPERATIONS = {
    "add": lambda x, y, s: x + y,
    "subtract": lambda x, y, s: x - y,
    "multiply": lambda x, y, s: x * y,
    "and": lambda x, y, s: x & y,
    "or": lambda x, y, s: x | y,
    "left shift": lambda x, y, s: x << s,
    "logical right shift": lambda x, y, s: (x.view(np.uint32) >> s.view(np.uint32)).view(i32),
    "sum_lanes_i32": lambda x, y, s: np.repeat(x.reshape(-1, 16).sum(1, dtype=i32), 16),
    "load_u8": lambda x, y, s: x.view(np.uint8)[: x.size].astype(i32),
    "load_i8": lambda x, y, s: x.view(np.int8)[: x.size].astype(i32),
    "splat_bytes4": lambda x, y, s: np.repeat(x.view(np.uint8).reshape(-1, 64)[:, 1:5].copy().view(i32), 16),
}


@pytest.fixture(scope="module")
def integer_results() -> tuple[tuple[np.ndarray, ...], np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(6)
    limits = np.array([0, 1, -1, 127, 128, -128, 16777217, 33554435, 2**31 - 1, -(2**31)], i32)
    x, y = (np.concatenate([rng.permutation(np.resize(limits, 96)), rng.integers(-(2**31), 2**31, 4000)]) for _ in "xy")
    x, y = x.astype(i32), y.astype(i32)
    operands = (x, y, rng.integers(0, 32, x.size, i32))
    out, floats, bytes_ = np.zeros((11, x.size), i32), unwritten(x.size), np.zeros(x.size, np.int8)
    run(integer_operations, [x.size // 16, *operands, out, floats, bytes_])
    return operands, out, floats, bytes_


@pytest.mark.parametrize("name", INTEGER_OPERATIONS)
def test_integer_operations_wrap_around(name: str, integer_results: tuple[tuple[np.ndarray, ...], ...]) -> None:
    operands, out, *_ = integer_results
    assert np.array_equal(out[list(INTEGER_OPERATIONS).index(name)], INTEGER_OPERATIONS[name](*operands))


def test_integers_become_the_nearest_float(integer_results: tuple[tuple[np.ndarray, ...], ...]) -> None:
    (x, *_), _, floats, _ = integer_results
    assert_same_bits(floats, x.astype(f32))


def test_bytes_are_the_low_ones_of_the_lanes(integer_results: tuple[tuple[np.ndarray, ...], ...]) -> None:
    (x, *_), _, _, low = integer_results
    assert np.array_equal(low, x.astype(np.int8))


# ----------------------------------------------------------------------------------------------- tiles, prefetch


@kernel
def running_sums(I, E, tid, nth):
    """I: 2 float32 in (5, 16), 3 out (5, 16): sums of rows 0 .. u; 4 int32 in (3, 16), 5 out, reversed."""
    floats = tile_f32(5)
    total = splat_zero()
    for u in range(5):
        total = total + load_f32(f32_ptr(I[2]), 16 * u)
        floats[u] = total
    ints = tile_i32(3)
    for u in range(3):
        ints[2 - u] = load_bytes(i32_ptr(I[4]), 16 * u)
    for u in range(5):
        store_f32(f32_ptr(I[3]), 16 * u, floats[u])
    for u in range(3):
        store_bytes(i32_ptr(I[5]), 16 * u, ints[u])


def test_a_tile_keeps_each_of_its_vectors() -> None:
    floats = np.arange(80, dtype=f32).reshape(5, 16)
    ints = np.arange(48, dtype=i32).reshape(3, 16)
    out, reversed_ = unwritten(5, 16), np.zeros((3, 16), i32)
    run(running_sums, [floats, out, ints, reversed_])
    assert np.array_equal(out, np.cumsum(floats, 0))
    assert np.array_equal(reversed_, ints[::-1])


@kernel
def prefetch_everywhere(I, E, tid, nth):
    for i in range(40):
        prefetch(u8_ptr(0), 1 << i)


def test_prefetching_what_is_not_mapped_does_nothing() -> None:
    run(prefetch_everywhere, [])
