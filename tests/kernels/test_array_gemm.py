import numpy as np
import pytest

from tests.kernels.float_math import F32, assert_same_bits, fma
from tests.kernels.opcode_runner import run, unwritten

f32 = np.float32


def product(a: F32, b: F32) -> F32:
    """A @ B in the order that `array_gemm` lays down."""
    total = np.zeros((len(a), b.shape[1]), f32)
    for segment in range(0, a.shape[1], 512):
        acc = np.zeros_like(total)
        for k in range(segment, min(segment + 512, a.shape[1])):
            acc = fma(a[:, k : k + 1], b[k], acc)
        total = total + acc
    return total


def panels_of(b: F32, n_threads: int = 1, transposed: bool = False) -> F32:
    k, n = b.shape
    panels = unwritten(-(-n // 16) * 16 * k)
    stored = np.ascontiguousarray(b.T) if transposed else b
    steps = (1, k) if transposed else (n, 1)
    run("array_panels", [stored, panels, k, n, *steps, 1, np.zeros(2, np.int64)], n_threads=n_threads)
    return panels


def multiply(a: F32, b: F32, n_threads: int, bias: F32 | None = None, add_to: F32 | None = None) -> F32:
    (m, k), n = a.shape, b.shape[1]
    guarded = unwritten(m * n + 16)
    c = guarded[: m * n].reshape(m, n)
    if add_to is not None:
        c[:] = add_to
    fields = [a, panels_of(b), c, m, n, k, k, n, 0 if bias is None else bias, 1, np.zeros(3, np.int64)]
    run("array_gemm", [*fields, int(add_to is not None)], n_threads=n_threads)
    assert_same_bits(guarded[m * n :], unwritten(16))
    return c


@pytest.mark.parametrize("m", [1, 2, 7, 8, 9, 17])
@pytest.mark.parametrize(("k", "n"), [(1, 1), (3, 15), (16, 16), (33, 17), (520, 50), (1030, 70)])
def test_products_have_the_bits_of_the_formula_with_any_number_of_threads(m: int, k: int, n: int) -> None:
    rng = np.random.default_rng(m * 1000 + k + n)
    a, b = rng.standard_normal((m, k), f32), rng.standard_normal((k, n), f32)
    bias, old = rng.standard_normal(n, f32), rng.standard_normal((m, n), f32)
    expected = product(a, b)
    for n_threads in (1, 2, 3):
        assert_same_bits(multiply(a, b, n_threads), expected)
    assert_same_bits(multiply(a, b, 2, bias), expected + bias)
    assert_same_bits(multiply(a, b, 2, bias, old), (expected + old) + bias)


def test_panels_hold_16_columns_side_by_side_and_zeros_behind_the_last() -> None:
    b = np.arange(2 * 18, dtype=f32).reshape(2, 18)
    for n_threads in (1, 2):
        for transposed in (False, True):
            panels = panels_of(b, n_threads, transposed).reshape(2, 2, 16)
            assert np.array_equal(panels[0], b[:, :16])
            assert np.array_equal(panels[1, :, :2], b[:, 16:])
            assert not panels[1, :, 2:].any()


def test_a_batch_takes_each_matrix_from_its_offset() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((3, 4, 5), f32), rng.standard_normal((5, 20), f32)
    panels, c = panels_of(b), unwritten(3, 4, 20)
    offsets = np.array([[0, 0, 0], [20, 0, 80], [40, 0, 160]])  # every product with the same panels
    for n_threads in (1, 2, 3):
        run("array_gemm", [a, panels, c, 4, 20, 5, 5, 20, 0, 3, offsets, 0], n_threads=n_threads)
        assert_same_bits(c, np.stack([product(each, b) for each in a]))


def test_float64_products_are_one_chain() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((3, 7)), rng.standard_normal((7, 5))
    expected = np.zeros((3, 5))
    for k in range(7):
        expected = expected + a[:, k : k + 1] * b[k]
    for n_threads in (1, 2):
        c = np.full((3, 5), np.nan)
        run("array_gemm_f64", [a, b, c, 3, 5, 7, 1, np.zeros(3, np.int64)], n_threads=n_threads)
        assert np.array_equal(c, expected)
