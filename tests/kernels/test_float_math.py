"""The reference itself: its fma is libm's."""

import ctypes
import ctypes.util

import numpy as np
import pytest

from tests.kernels.float_math import assert_same_bits, fma, sum_lanes, tricky_floats

f32 = np.float32


@pytest.fixture(scope="module")
def libm_fmaf():
    path = ctypes.util.find_library("m")
    if path is None:
        pytest.skip("no C library of mathematics")
    function = ctypes.CDLL(path).fmaf
    function.argtypes, function.restype = [ctypes.c_float] * 3, ctypes.c_float
    return function


def test_fma_has_the_bits_of_libm(libm_fmaf) -> None:
    rng = np.random.default_rng(1)
    pool = tricky_floats(4000, 2)
    x, y, z = (rng.choice(pool, 20000) for _ in range(3))
    near = rng.standard_normal((3, 20000)).astype(f32)
    near[2] = -(near[0] * near[1]) * rng.choice(f32([1, 1.0000001, 2, 1e-7, 1e7]), 20000)  # cancellation
    with np.errstate(all="ignore"):
        tie = np.ldexp(rng.integers(1, 1 << 24, (3, 20000)), rng.integers(-40, 40, (3, 20000))).astype(f32)
    triples = [np.concatenate([a, b, c]) for a, b, c in zip((x, y, z), near, tie, strict=True)]
    expected = np.array([libm_fmaf(*t) for t in zip(*(v.tolist() for v in triples), strict=True)], f32)
    assert_same_bits(fma(*triples), expected)


def test_fma_rounds_once_where_a_float64_sum_would_round_twice(libm_fmaf) -> None:
    x, y, z = f32(1 + 2**-12), f32(1 + 2**-12), f32(2**-60)  # the product is a tie between two floats; z decides
    twice = f32(np.float64(x) * np.float64(y) + np.float64(z))
    assert fma(x, y, z) == libm_fmaf(x, y, z) != twice


def test_lanes_are_added_by_the_tree() -> None:
    lanes = np.zeros(16, f32)
    lanes[[0, 8, 4]] = 1e8, -1e8, 1.0
    assert sum_lanes(lanes) == 1.0  # from left to right it would be 0
