import numpy as np
import pytest

from modelc.kernels import env
from tests.kernels.activation_records import quantize, records
from tests.kernels.float_math import F32, assert_same_bits, silu
from tests.kernels.opcode_runner import is_unwritten, run, unwritten

f32 = np.float32


def gates(rows: int, groups: int) -> tuple[F32, F32]:
    """Rows with a gate, an up, both 16 * groups wide, and 10 columns more; and silu(gate) * up."""
    width = 16 * groups
    gate_up = (np.random.default_rng(rows).standard_normal((rows, 2 * width + 10)) * 8).astype(f32)
    gate_up[0, :4] = [0.0, -0.0, 100.0, -100.0]
    return gate_up, silu(gate_up[:, :width]) * gate_up[:, width : 2 * width]


@pytest.mark.parametrize("rows", [1, 2, 7, 17])
def test_gate_and_up_become_silu_of_gate_times_up(rows: int) -> None:
    gate_up, expected = gates(rows, 5)
    for n_threads in (1, 2, 3):
        memory = np.concatenate([gate_up.reshape(-1), unwritten((rows + 1) * 96)])
        run("swiglu", [0, 80, 170, 5, gate_up.size, 96], {env.FLOATS: memory, env.N_ROWS: rows}, n_threads)
        out = memory[gate_up.size :].reshape(rows + 1, 96)
        assert_same_bits(out[:rows, :80], expected)
        assert is_unwritten(out[rows:])
        assert is_unwritten(out[:, 80:])


@pytest.mark.parametrize("activation", ["a8", "a16"])
@pytest.mark.parametrize("rows", [1, 2, 9])
def test_quantizing_at_once_gives_the_bytes_of_both_steps(activation: str, rows: int) -> None:
    for groups in (2, 6, 10):
        gate_up, hidden = gates(rows, groups)
        expected = records(quantize(hidden, activation))
        for n_threads in (1, 2, 3, 7):
            out = np.full_like(expected, 0xAA)
            environment = {env.FLOATS: gate_up, env.QUANTS: out, env.N_ROWS: rows}
            fields = [0, 16 * groups, gate_up.shape[1], groups, 0, 0]
            run(f"swiglu_quantize.{activation}", fields, environment, n_threads)
            assert np.array_equal(out, expected)
