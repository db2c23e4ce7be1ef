import numpy as np
import pytest

from modelc.kernels import env
from tests.kernels.float_math import assert_same_bits, silu
from tests.kernels.opcode_runner import is_unwritten, run, unwritten

f32 = np.float32
GROUPS = 5


@pytest.mark.parametrize("rows", [1, 2, 7, 17])
def test_gate_and_up_become_silu_of_gate_times_up(rows: int) -> None:
    rng = np.random.default_rng(rows)
    gate_up = (rng.standard_normal((rows, 170)) * 8).astype(f32)  # gate at 0, up at 80, both 80 wide
    gate_up[0, :4] = [0.0, -0.0, 100.0, -100.0]
    expected = silu(gate_up[:, :80]) * gate_up[:, 80:160]
    for n_threads in (1, 2, 3):
        memory = np.concatenate([gate_up.reshape(-1), unwritten((rows + 1) * 96)])
        fields = [0, 80, 170, GROUPS, gate_up.size, 96]
        run("swiglu", fields, {env.FLOATS: memory, env.N_ROWS: rows}, n_threads)
        out = memory[gate_up.size :].reshape(rows + 1, 96)
        assert_same_bits(out[:rows, :80], expected)
        assert is_unwritten(out[rows:])
        assert is_unwritten(out[:, 80:])
