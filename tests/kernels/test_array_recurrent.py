import numpy as np
import pytest

from tests.kernels.float_math import assert_same_bits
from tests.kernels.opcode_runner import float_bits, run, unwritten
from tests.kernels.test_array_maps import mapped

f32 = np.float32


def sigmoid(x):
    return mapped("sigmoid", np.ascontiguousarray(x).reshape(-1)).reshape(x.shape)


def tanh(x):
    return mapped("tanh", np.ascontiguousarray(x).reshape(-1)).reshape(x.shape)


@pytest.mark.parametrize("hidden", [1, 16, 20])
@pytest.mark.parametrize("coupled", [0, 1])
def test_a_cell_has_the_bits_of_the_formula(hidden: int, coupled: int) -> None:
    rng = np.random.default_rng(hidden)
    gates, old = rng.standard_normal((3, 4 * hidden), f32), rng.standard_normal((3, hidden), f32)
    peepholes = rng.standard_normal(3 * hidden, f32)
    i, o, e, z = (gates[:, n * hidden : (n + 1) * hidden] for n in range(4))
    opened = sigmoid(i + peepholes[:hidden] * old)
    kept = f32(1) - opened if coupled else sigmoid(e + peepholes[2 * hidden :] * old)
    new = kept * old + opened * tanh(z)
    expected = sigmoid(o + peepholes[hidden : 2 * hidden] * new) * tanh(new)
    for n_threads in (1, 2, 3):
        c, h, y = old.copy(), unwritten(3, hidden), unwritten(3, hidden)
        fields = [gates, c, h, y, peepholes, 3, hidden, float_bits(np.inf), coupled]
        run("array_lstm_cell", fields, n_threads=n_threads)
        assert_same_bits(c, new)
        assert_same_bits(h, expected)
        assert_same_bits(y, expected)


def test_what_goes_into_the_gates_is_clipped() -> None:
    gates, c = np.array([[9, -9, 9, 9]], f32), np.ones((1, 1), f32)
    h, y = unwritten(1, 1), unwritten(1, 1)
    run("array_lstm_cell", [gates, c, h, y, 0, 1, 1, float_bits(0.5), 0])
    one = sigmoid(np.full(1, 0.5, f32))
    new = one * f32(1) + one * tanh(np.full(1, 0.5, f32))
    assert_same_bits(c[0], new)
    assert_same_bits(y[0], sigmoid(np.full(1, -0.5, f32)) * tanh(new))
