import numpy as np
import pytest

from tests.kernels.float_math import F32, assert_same_bits, exp, fma, sum_lanes
from tests.kernels.opcode_runner import float_bits, run, unwritten

f32 = np.float32


def lanes(x: F32, filler: float = 0.0) -> F32:
    """(rows, n) as (rows, steps, 16), filled up behind n."""
    rows, n = x.shape
    padded = np.full((rows, -(-n // 16) * 16), filler, f32)
    padded[:, :n] = x
    return padded.reshape(rows, -1, 16)


def lane_sums(x: F32) -> F32:
    total = np.zeros((len(x), 16), f32)
    for i in range(x.shape[1]):
        total = total + x[:, i]
    return sum_lanes(total)


@pytest.mark.parametrize("n", [1, 15, 16, 17, 100])
def test_softmax_has_the_bits_of_the_formula(n: int) -> None:
    x = np.random.default_rng(n).standard_normal((7, n), f32) * f32(4)
    shifted = lanes(x - x.max(axis=1, keepdims=True), -np.inf)
    e = exp(shifted)
    e[np.isneginf(shifted)] = 0
    expected = e.reshape(7, -1)[:, :n] * (f32(1) / lane_sums(e))[:, None]
    for n_threads in (1, 2, 3):
        for kind in ("soft", "masked"):
            y = unwritten(7, n)
            run(f"array_softmax.{kind}", [x, y, 7, n], n_threads=n_threads)
            assert_same_bits(y, expected)


def test_rows_that_see_nothing_are_nan_or_zero() -> None:
    x = np.full((2, 20), -np.inf, f32)
    x[1, 3] = 0
    for kind, empty in (("soft", np.nan), ("masked", 0.0)):
        y = unwritten(2, 20)
        run(f"array_softmax.{kind}", [x, y, 2, 20])
        assert np.array_equal(y[0], np.full(20, empty, f32), equal_nan=True)
        assert y[1, 3] == 1 and y[1].sum() == 1


def test_logarithms_of_softmax_are_right() -> None:
    x = np.random.default_rng(3).standard_normal((3, 37), f32) * f32(20)
    y = unwritten(3, 37)
    run("array_softmax.log", [x, y, 3, 37])
    wide = x.astype(float)
    right = wide - np.log(np.exp(wide - wide.max(1, keepdims=True)).sum(1, keepdims=True)) - wide.max(1, keepdims=True)
    assert np.allclose(y, right, rtol=1e-6, atol=2e-6)


@pytest.mark.parametrize("kind", ["layer", "rms"])
@pytest.mark.parametrize("n", [1, 16, 33, 384])
def test_norms_have_the_bits_of_the_formula(kind: str, n: int) -> None:
    rng = np.random.default_rng(n)
    x, weight, bias = rng.standard_normal((5, n), f32), rng.standard_normal(n, f32), rng.standard_normal(n, f32)
    mean = lane_sums(lanes(x)) / f32(n) if kind == "layer" else np.zeros(5, f32)
    squares = np.zeros((5, 16), f32)
    for step in np.moveaxis(lanes(x - mean[:, None]), 1, 0):
        squares = fma(step, step, squares)
    deviation = f32(1) / np.sqrt(sum_lanes(squares) / f32(n) + f32(1e-5))
    expected = (x - mean[:, None]) * deviation[:, None] * weight + bias
    for n_threads in (1, 2, 3):
        y, means, deviations = unwritten(5, n), unwritten(5), unwritten(5)
        run(f"array_norm.{kind}", [x, y, 5, n, weight, bias, float_bits(1e-5), means, deviations], n_threads=n_threads)
        assert_same_bits(y, expected)
        assert_same_bits(means, mean)
        assert_same_bits(deviations, deviation)


def test_a_norm_adds_the_residual_and_keeps_the_sum() -> None:
    rng = np.random.default_rng(5)
    x, other = rng.standard_normal((4, 50), f32), rng.standard_normal((4, 50), f32)
    y, summed, alone = unwritten(4, 50), unwritten(4, 50), unwritten(4, 50)
    run("array_norm.layer", [x, y, 4, 50, 0, 0, float_bits(1e-5), 0, 0, other, summed])
    run("array_norm.layer", [x + other, alone, 4, 50, 0, 0, float_bits(1e-5)])
    assert_same_bits(summed, x + other)
    assert_same_bits(y, alone)


@pytest.mark.parametrize(("kind", "term"), [("sum", lambda x: x), ("squares", np.square), ("abs", np.abs)])
@pytest.mark.parametrize("shape", [(3, 100, 1), (2, 9001, 1), (2, 7, 33), (2, 700, 33), (1, 1, 1), (2, 0, 5)])
def test_sums_have_the_bits_of_the_formula(kind: str, term: np.ufunc, shape: tuple[int, int, int]) -> None:
    outer, n, inner = shape
    x = np.random.default_rng(4).standard_normal(shape, f32)
    expected = np.zeros((outer, 16 if inner == 1 else inner), f32)
    terms = np.moveaxis(lanes(term(x[:, :, 0])) if inner == 1 else term(x), 1, 0)
    whole = n // 16 if inner == 1 else n
    for segment in range(0, whole, 256):
        part = np.zeros_like(expected)
        for step in terms[segment : min(segment + 256, whole)]:
            part = part + step
        expected = expected + part
    for step in terms[whole:]:
        expected = expected + step
    expected = sum_lanes(expected)[:, None] if inner == 1 else expected
    for n_threads in (1, 2, 3):
        y = unwritten(outer, inner)
        run(f"array_reduce.{kind}", [x, y, outer, n, inner, float_bits(0.5)], n_threads=n_threads)
        assert_same_bits(y, expected * f32(0.5))
