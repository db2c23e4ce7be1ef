"""The multiply-add for processors without one: rounded once, for numbers of every size."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from modelc.kernels.jit import intrinsic, kernel
from modelc.kernels.pointers import f32_ptr
from modelc.kernels.simd import F32x16, load_f32, store_f32
from modelc.kernels.soft_fma import soft_fma
from tests.kernels.float_math import tricky_floats
from tests.kernels.opcode_runner import run, unwritten

f32 = np.float32


@intrinsic
def emulated(typing_context, x, y, z):
    return F32x16(F32x16, F32x16, F32x16), lambda context, builder, signature, args: soft_fma(builder, *args)


@kernel
def multiply_add(I, E, tid, nth):
    """I: 2 vectors, 3 x, 4 y, 5 z, 6 out."""
    for i in range(0, 16 * I[2], 16):
        x, y, z = load_f32(f32_ptr(I[3]), i), load_f32(f32_ptr(I[4]), i), load_f32(f32_ptr(I[5]), i)
        store_f32(f32_ptr(I[6]), i, emulated(x, y, z))


def computed(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    out = unwritten(x.size)
    run(multiply_add, [x.size // 16, x, y, z, out])
    return out


def exact(x: f32, y: f32, z: f32) -> f32:
    """The float32 nearest to x * y + z, ties to even; finite values."""
    value = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    with np.errstate(over="ignore"):
        near = f32(float(value))
        around = [near, np.nextafter(near, f32(-np.inf)), np.nextafter(near, f32(np.inf))]
    finite = [f for f in around if np.isfinite(f)]
    if len(finite) < 3:
        return near  # at the edge of what there is, float64 decides alike
    return min(finite, key=lambda f: (abs(Fraction(float(f)) - value), int(f.view(np.int32)) & 1))


def check(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> None:
    expected = np.array([exact(*values) for values in zip(x, y, z, strict=True)], f32)
    assert np.array_equal(computed(x, y, z), expected)


def test_numbers_of_every_size_are_rounded_once() -> None:
    rng = np.random.default_rng(1)
    scale = [2.0 ** rng.integers(-120, 60, 3200) for _ in range(3)]
    x, y, z = (rng.standard_normal(3200).astype(f32) * s.astype(f32) for s in scale)
    check(x, y, z)
    check(x, y, (-x * y).astype(f32))  # what is left is the product's rounding


def almost(power: int) -> tuple[f32, f32]:
    """Two floats whose product is 2^power less one part in 2^32, which float64 loses behind a much larger number."""
    first = power // 2
    return f32((1 + 2.0**-16) * 2.0**first), f32((1 - 2.0**-16) * 2.0 ** (power - first))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("unit", "power"), [(2.0**-23, -24), (2.0**17, 16), (2.0**-149, -150)])
def test_a_sum_that_float64_puts_between_two_floats_is_rounded_once(unit: float, power: int, sign: int) -> None:
    # Odd and even multiples of the unit, and half a unit that is a little less than it looks.
    z = (np.arange((1 << 23) - 64, (1 << 23) + 64, dtype=np.float64) * unit).astype(f32)
    x, y = (np.full(z.size, value) for value in almost(power))
    for direction in (1, -1):
        check(f32(direction) * x, y, f32(sign) * z)


def test_zeros_keep_their_signs_and_infinities_and_nans_go_through() -> None:
    values = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3e38]
    x, y, z = (np.resize(grid, 512).astype(f32) for grid in np.meshgrid(values, values, values))
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64) * y.astype(np.float64) + z.astype(np.float64)  # exact for these
        expected = wide.astype(f32)
    found = computed(x, y, z)
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    numbers = ~np.isnan(expected)
    assert found[numbers].tobytes() == expected[numbers].tobytes()


@pytest.mark.parametrize("seed", [3, 4])
def test_floats_of_all_bit_patterns_agree_with_exact_arithmetic(seed: int) -> None:
    floats = tricky_floats(4000, seed)
    floats = floats[np.isfinite(floats)]
    rng = np.random.default_rng(seed)
    x, y, z = (rng.choice(floats, 1600) for _ in range(3))
    small = np.abs(x.astype(np.float64) * y + z) < 1e38
    x, y, z = (np.resize(v[small], 1600) for v in (x, y, z))
    check(x, y, z)
