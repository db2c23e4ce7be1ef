import numpy as np
import pytest

from modelc.kernels import env
from modelc.kernels.activations import SCALE_AT
from tests.kernels.activation_records import Q_MAX, quantize, records
from tests.kernels.float_math import F32
from tests.kernels.opcode_runner import run

f32 = np.float32
ACTIVATIONS = ("a8", "a16")


def awkward_rows(n: int, cols: int) -> F32:
    """Random rows with, among their blocks, zeros, one value only, ties, opposite limits, tiny and huge values."""
    x = np.random.default_rng(n * cols).standard_normal((n, cols), f32)
    x[0, :32] = 0
    x[-1, :32] = np.where(np.arange(32) == 17, -3, 0)
    x[n // 2, :32] = np.arange(32) - 15.5
    x[n // 2, 0] = 127  # a scale of 1: x.5 are ties
    if cols > 32:
        x[0, 32:64] *= f32(1e-30)
        x[-1, 32:64] *= f32(1e30)
        x[n // 2, 32:64] = np.where(np.arange(32) % 2, 5, -5)
    return x


def quantized_bytes(x: F32, activation: str, n_threads: int, **slots: int) -> np.ndarray:
    """What the opcode writes for all rows of x, in a buffer that was full of 0xAA."""
    rows, cols = x.shape
    out = np.full_like(records(quantize(np.zeros((rows, cols), f32), activation)), 0xAA)
    environment = {env.FLOATS: x, env.QUANTS: out, env.N_ROWS: rows, env.N_OUT: rows}
    environment |= {getattr(env, name): value for name, value in slots.items()}
    out_rows_only = int("N_OUT" in slots)
    run(f"quantize.{activation}", [0, cols, cols // 32, 0, 0, out_rows_only], environment, n_threads)
    return out


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_records_have_the_bytes_of_their_formula(activation: str, n_threads: int) -> None:
    for rows in (2, 3, 8, 9, 17):
        for cols in (32, 160):
            x = awkward_rows(rows, cols)
            assert np.array_equal(quantized_bytes(x, activation, n_threads), records(quantize(x, activation)))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_values_are_within_half_a_step(activation: str) -> None:
    x = awkward_rows(17, 160)
    quantized = quantize(x, activation)
    assert np.abs(quantized.q).max() == Q_MAX[activation]
    error = np.abs(quantized.q * quantized.d[..., None].astype(np.float64) - x.reshape(17, 5, 32))
    assert (error <= 0.51 * quantized.d[..., None]).all()


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("private_source", [0, 1])
def test_in_a_one_row_batch_each_thread_has_a_copy_in_a_panel_of_its_own(activation: str, private_source: int) -> None:
    x = awkward_rows(3, 96)
    out = np.full_like(records(quantize(np.zeros((24, 96), f32), activation)), 0xAA)
    environment = {env.FLOATS: x, env.QUANTS: out, env.N_ROWS: 1}
    run(f"quantize.{activation}", [0, 96, 3, 0, private_source, 0], environment, n_threads=3)
    for tid in range(3):
        source = x[tid if private_source else 0]
        assert np.array_equal(out[tid], records(quantize(source[None], activation))[0])


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("n_out", [0, 1, 5])
def test_only_rows_whose_logits_are_wanted_are_written(activation: str, n_out: int) -> None:
    x = awkward_rows(9, 64)
    expected = records(quantize(x, activation))
    expected[0, :, n_out:] = 0xAA
    expected[1:] = 0xAA
    assert np.array_equal(quantized_bytes(x, activation, 2, N_OUT=n_out), expected)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_values_too_small_for_a_scale_weigh_nothing(activation: str) -> None:
    x = np.random.default_rng(1).standard_normal((2, 32), f32) * f32(1e-38)
    scale_at = env.RECORD_BYTES[activation] - 16
    numbers = quantized_bytes(x, activation, 1)[0, 0, :2, scale_at : scale_at + 8].copy().view(f32)
    assert (np.abs(numbers) < 1e-25).all()


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("damage", [np.nan, -np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_seen_in_the_scale_wherever_it_stands(activation: str, damage: float) -> None:
    x = np.random.default_rng(1).standard_normal((32, 96), f32)
    for row in range(32):
        x[row, 32 + row] = damage  # every place of the second block
    out = quantized_bytes(x, activation, 1).view(np.uint8)
    at, size = SCALE_AT[activation], env.RECORD_BYTES[activation]
    scales = out.reshape(-1, size)[:, at : at + 4].copy().view(f32).reshape(4, 3, 8).transpose(0, 2, 1).reshape(32, 3)
    assert not np.isfinite(scales[:, 1]).any()
    assert np.isfinite(scales[:, [0, 2]]).all()
