import numpy as np
import pytest

from modelc.kernels import env
from tests.kernels.float_math import F32, assert_same_bits
from tests.kernels.opcode_runner import run

f32 = np.float32

STRIDE = 200  # more than the widest part and the floats before it
GUARD = 8  # floats before the part


def expected(y: F32, b: F32, activation: str) -> F32:
    total = y + b
    return np.where(total < 0, f32(0), total) if activation == "relu" else total


def outputs(rows: int, groups: int) -> tuple[F32, F32]:
    """A matmul's output of which the last 5 columns are padding, in wider rows, and a vector padded with zeros."""
    rng = np.random.default_rng(rows + 100 * groups)
    y = rng.standard_normal((rows, STRIDE)).astype(f32)
    y[0, GUARD : GUARD + 4] = [np.inf, -np.inf, np.nan, -0.0]
    b = np.zeros(16 * groups, f32)
    b[:-5] = rng.standard_normal(16 * groups - 5)
    b[:4] = [1.0, 1.0, 1.0, -0.0]
    y[:, GUARD + 16 * groups - 5 : GUARD + 16 * groups] = 0
    return y, b


@pytest.mark.parametrize("activation", ["none", "relu"])
@pytest.mark.parametrize("groups", [1, 2, 3, 8, 11])
@pytest.mark.parametrize("rows", [1, 2, 9])
def test_the_vector_is_added_to_each_row_and_nothing_else_changes(activation: str, groups: int, rows: int) -> None:
    y, b = outputs(rows, groups)
    part = slice(GUARD, GUARD + 16 * groups)
    wanted = y.copy()
    wanted[:, part] = expected(y[:, part], b, activation)
    for n_threads in (1, 2, 3, 7):
        memory, constants = y.copy(), np.concatenate([np.full(32, 7, f32), b])
        environment = {env.FLOATS: memory, env.CONSTANTS: constants, env.N_ROWS: rows, env.N_OUT: 0}
        run(f"bias.{activation}", [GUARD, STRIDE, 32, groups, 0], environment, n_threads)
        assert_same_bits(memory, wanted)
        assert (memory[:, GUARD + 16 * groups - 5 : part.stop] == 0).all(), "padding columns"


@pytest.mark.parametrize(("rows", "wanted_rows"), [(9, 0), (9, 4), (9, 9), (1, 1), (1, 0)])
def test_of_wanted_logits_only_their_rows_are_touched(rows: int, wanted_rows: int) -> None:
    y, b = outputs(rows, 4)
    touched = wanted_rows if rows > 1 else 1  # matmul computes the single row, wanted or not
    wanted = y.copy()
    wanted[:touched, GUARD : GUARD + 64] = expected(y[:touched, GUARD : GUARD + 64], b, "none")
    environment = {env.FLOATS: y, env.CONSTANTS: b, env.N_ROWS: rows, env.N_OUT: wanted_rows}
    run("bias.none", [GUARD, STRIDE, 0, 4, 1], environment, 2)
    assert_same_bits(y, wanted)


@pytest.mark.parametrize(("activation", "by_hand"), [("none", [-1.0, 0.0, 3.5]), ("relu", [0.0, 0.0, 3.5])])
def test_by_hand(activation: str, by_hand: list[float]) -> None:
    y, b = np.zeros((1, 16), f32), np.zeros(16, f32)
    y[0, :3], b[:3] = [-2.0, -1.5, 3.0], [1.0, 1.5, 0.5]
    run(f"bias.{activation}", [0, 16, 0, 1, 0], {env.FLOATS: y, env.CONSTANTS: b, env.N_ROWS: 1})
    assert y[0].tolist() == by_hand + [0.0] * 13
