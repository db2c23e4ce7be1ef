import math

import numpy as np
import pytest

from modelc.kernels.elementary import exp, silu, sincos
from modelc.kernels.jit import kernel
from modelc.kernels.pointers import f32_ptr, f64_ptr
from modelc.kernels.simd import load_f32, store_f32
from tests.kernels import float_math
from tests.kernels.float_math import assert_same_bits
from tests.kernels.opcode_runner import run, unwritten

f32 = np.float32


@kernel
def exp_and_silu(I, E, tid, nth):
    """I: 2 n, 3 x, 4 exp, 5 silu."""
    for i in range(0, I[2], 16):
        x = load_f32(f32_ptr(I[3]), i)
        store_f32(f32_ptr(I[4]), i, exp(x))
        store_f32(f32_ptr(I[5]), i, silu(x))


@kernel
def sines(I, E, tid, nth):
    """I: 2 n, 3 angle, 4 sin, 5 cos."""
    for i in range(I[2]):
        s, c = sincos(f64_ptr(I[3])[i])
        f64_ptr(I[4])[i] = s
        f64_ptr(I[5])[i] = c


@pytest.fixture(scope="module")
def exponentials() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    limits = [0.0, -0.0, 88.3, -87.3, 88.4, -87.4, 1e30, -1e30, np.inf, -np.inf, 1e-30, -1e-40, 0.34657359, -0.34657359]
    limits += list(np.nextafter(f32([88.3, -87.3]), f32(0))) + list(np.nextafter(f32([88.3, -87.3]), f32(1000)))
    parts = [np.resize(f32(limits), 32), rng.uniform(-90, 90, 200_000), rng.uniform(-1, 1, 100_000)]
    x = np.concatenate(parts).astype(f32)
    e, s = unwritten(x.size), unwritten(x.size)
    run(exp_and_silu, [x.size, x, e, s])
    return x, e, s


def test_exp_has_the_bits_of_its_formula(exponentials: tuple[np.ndarray, ...]) -> None:
    x, e, _ = exponentials
    assert_same_bits(e, float_math.exp(x))


def test_silu_has_the_bits_of_its_formula(exponentials: tuple[np.ndarray, ...]) -> None:
    x, _, s = exponentials
    assert_same_bits(s, float_math.silu(x))


def test_exp_is_near_the_truth(exponentials: tuple[np.ndarray, ...]) -> None:
    x, e, _ = exponentials
    inside = (x >= f32(-87.3)) & (x <= f32(88.3))
    truth = np.exp(x[inside].astype(np.float64))
    assert np.abs(e[inside] / truth - 1).max() < 1e-7


def test_exp_of_far_negative_values_is_exactly_zero_and_of_zero_one(exponentials: tuple[np.ndarray, ...]) -> None:
    x, e, _ = exponentials
    assert (e[x < f32(-87.3)] == 0).all()
    assert (e[x == 0] == 1).all()
    assert np.isfinite(e).all()


def test_silu_is_near_the_truth(exponentials: tuple[np.ndarray, ...]) -> None:
    x, _, s = exponentials
    inside = np.abs(x) < 80
    wide = x[inside].astype(np.float64)
    truth = wide / (1 + np.exp(-wide))
    assert np.abs(s[inside] - truth).max() < 3e-7 * 90
    assert (np.abs(s[inside] - truth) <= 3e-7 * np.abs(truth)).all()
    assert (s[x > 80] == x[x > 80]).all()


@pytest.fixture(scope="module")
def angles() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    quarter_turns = np.arange(-4000, 4000) * (math.pi / 2)
    positions = np.multiply.outer(np.arange(0, 131072, 97), 10000.0 ** (-np.arange(0, 64, 7) / 64)).reshape(-1)
    far = rng.uniform(-(2.0**22), 2.0**22, 20000)
    a = np.concatenate([quarter_turns, positions, rng.uniform(-1e5, 1e5, 20000), far, [0.0, -0.0, 1e-300]])
    s, c = np.full_like(a, np.nan), np.full_like(a, np.nan)
    run(sines, [a.size, a, s, c])
    return a, s, c


def test_sincos_has_the_bits_of_its_formula(angles: tuple[np.ndarray, ...]) -> None:
    a, s, c = angles
    expected_s, expected_c = float_math.sincos(a)
    assert np.array_equal(s.view(np.int64), expected_s.view(np.int64))
    assert np.array_equal(c.view(np.int64), expected_c.view(np.int64))


def test_sincos_is_near_the_truth(angles: tuple[np.ndarray, ...]) -> None:
    a, s, c = angles
    assert max(abs(v - math.sin(x)) for v, x in zip(s.tolist(), a.tolist(), strict=True)) < 1e-15
    assert max(abs(v - math.cos(x)) for v, x in zip(c.tolist(), a.tolist(), strict=True)) < 1e-15
