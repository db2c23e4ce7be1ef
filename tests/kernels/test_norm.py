import numpy as np
import pytest

from modelc.kernels import env
from tests.kernels.activation_records import quantize, records
from tests.kernels.float_math import F32, assert_same_bits, fma, sum_lanes
from tests.kernels.opcode_runner import float_bits, run, unwritten

f32 = np.float32
EPS = 1e-5


def normalised(x: F32, weight: F32, cols: int) -> F32:
    """x (rows, stride), zero behind its columns, in the order that `rms_norm` lays down."""
    halves = x.reshape(len(x), -1, 2, 16)
    acc = np.zeros((len(x), 2, 16), f32)
    for i in range(halves.shape[1]):
        acc = fma(halves[:, i], halves[:, i], acc)
    mean = sum_lanes(acc[:, 0] + acc[:, 1]) / f32(cols)
    scale = f32(1) / np.sqrt(mean + f32(EPS))
    return x * scale[:, None] * weight


def padded(values: F32, stride: int) -> F32:
    out = np.zeros((len(values), stride), f32)
    out[:, : values.shape[1]] = values
    return out


class Norm:
    """Memory for x, residual and out, 20 rows each, behind one another."""

    def __init__(self, cols: int) -> None:
        self.cols, self.stride = cols, (cols + 31) // 32 * 32
        rng = np.random.default_rng(cols)
        self.memory = unwritten(3, 20, self.stride)
        self.x, self.residual, self.out = self.memory
        self.x[:] = padded(rng.standard_normal((20, cols), f32), self.stride)
        self.residual[:] = padded(rng.standard_normal((20, cols), f32), self.stride)
        self.weight = padded(rng.standard_normal((1, cols), f32), self.stride)[0]

    def run(
        self,
        rows: int,
        n_threads: int,
        add: bool = False,
        out_rows: list[int] | None = None,
        records_out: np.ndarray | None = None,
        activation: str = "",
    ) -> None:
        """The plain opcode, or with `records_out` and `activation` the one that quantizes what it normalised."""
        size = self.x.size
        out = 2 * size if records_out is None else 0
        fields = [0, self.stride, size if add else -1, 0, out, float_bits(EPS), self.cols]
        fields += [int(out_rows is not None), 1, 0, 0]
        environment = {env.FLOATS: self.memory, env.CONSTANTS: self.weight, env.N_ROWS: rows}
        if out_rows is not None:
            environment |= {env.N_OUT: len(out_rows), env.OUT_ROWS: np.array(out_rows, np.int64)}
        if records_out is not None:
            environment[env.QUANTS] = records_out
        run("rms_norm" if records_out is None else f"rms_norm_quantize.{activation}", fields, environment, n_threads)


@pytest.mark.parametrize("cols", [16, 32, 50, 576])
@pytest.mark.parametrize("add", [False, True])
def test_rows_have_the_bits_of_the_formula(cols: int, add: bool) -> None:
    for rows in (2, 3, 9, 17):
        for n_threads in (1, 2, 3):
            norm = Norm(cols)
            x = norm.x + norm.residual if add else norm.x.copy()
            x[rows:] = norm.x[rows:]
            expected = norm.out.copy()
            expected[:rows] = normalised(x[:rows], norm.weight, cols)
            norm.run(rows, n_threads, add)
            assert_same_bits(norm.x, x)
            assert_same_bits(norm.out, expected)


@pytest.mark.parametrize("add", [False, True])
def test_in_a_one_row_batch_each_thread_has_x_and_out_of_its_own_and_shares_the_residual(add: bool) -> None:
    norm = Norm(48)
    x = norm.x[:3] + norm.residual[0] if add else norm.x[:3].copy()
    norm.run(1, 3, add)
    assert_same_bits(norm.x[:3], x)
    assert_same_bits(norm.out[:3], normalised(x, norm.weight, 48))


def test_wanted_rows_are_gathered_and_only_they_get_the_residual() -> None:
    wanted = [2, 5, 8, 9, 10]
    for n_threads in (1, 2, 3):
        norm = Norm(64)
        x = norm.x.copy()
        x[wanted] += norm.residual[wanted]
        expected = norm.out.copy()
        expected[:5] = normalised(x[wanted], norm.weight, 64)
        norm.run(11, n_threads, add=True, out_rows=wanted)
        assert_same_bits(norm.x, x)
        assert_same_bits(norm.out, expected)


def test_a_one_row_batch_needs_no_gathering() -> None:
    norm = Norm(32)
    expected = normalised(norm.x[:1], norm.weight, 32)
    norm.run(1, 1, out_rows=[0])
    assert_same_bits(norm.out[:1], expected)


def test_a_row_of_zeros_stays_zero() -> None:
    norm = Norm(32)
    norm.x[:] = 0
    norm.run(2, 1)
    assert (norm.out[:2] == 0).all()


# -------------------------------------------------------------------------------------------- normalise and quantize


def no_records(rows: int, cols: int, activation: str) -> np.ndarray:
    return np.full_like(records(quantize(np.zeros((rows, cols), f32), activation)), 0xAA)


@pytest.mark.parametrize("activation", ["a8", "a16"])
@pytest.mark.parametrize("cols", [32, 96, 576])
def test_quantizing_at_once_gives_the_bytes_of_both_steps(activation: str, cols: int) -> None:
    for rows, n_threads, add in ((2, 1, False), (9, 3, True), (17, 2, True)):
        norm = Norm(cols)
        x = norm.x[:rows] + norm.residual[:rows] if add else norm.x[:rows].copy()
        out = no_records(rows, cols, activation)
        norm.run(rows, n_threads, add, None, out, activation)
        assert_same_bits(norm.x[:rows], x)
        assert np.array_equal(out, records(quantize(normalised(x, norm.weight, cols), activation)))


@pytest.mark.parametrize("activation", ["a8", "a16"])
def test_quantizing_at_once_in_a_one_row_batch_each_thread_has_x_and_records_of_its_own(activation: str) -> None:
    norm = Norm(64)
    x = norm.x[:3] + norm.residual[0]
    out = no_records(24, 64, activation)
    norm.run(1, 3, True, None, out, activation)
    assert_same_bits(norm.x[:3], x)
    expected = normalised(x, norm.weight, 64)
    for tid in range(3):
        assert np.array_equal(out[tid], records(quantize(expected[tid : tid + 1], activation))[0])


def test_quantizing_at_once_gathers_wanted_rows_too() -> None:
    wanted = [2, 5, 8, 9, 10]
    norm = Norm(64)
    x = norm.x[wanted] + norm.residual[wanted]
    out = no_records(5, 64, "a8")
    norm.run(11, 2, True, wanted, out, "a8")
    assert_same_bits(norm.x[wanted], x)
    assert np.array_equal(out, records(quantize(normalised(x, norm.weight, 64), "a8")))
