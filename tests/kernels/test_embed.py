import numpy as np
import pytest

from modelc.dtypes import DTYPES
from modelc.kernels import env
from modelc.layout import dequantize, to_lanes
from tests.kernels.float_math import assert_same_bits
from tests.kernels.opcode_runner import float_bits, is_unwritten, run, unwritten
from tests.kernels.stored_blocks import BLOCK_TYPES, FLOAT_TYPES, random_weights

f32 = np.float32
ROWS = 50


def embed(name: str, cols: int, tokens: list[int], scale: float, n_threads: int) -> tuple[np.ndarray, np.ndarray]:
    """What the opcode writes, (rows + 1, cols + 3), and the values of the whole tensor."""
    plain = random_weights(name, ROWS, cols, np.random.default_rng(cols))
    out = unwritten(len(tokens) + (n_threads if len(tokens) == 1 else 1), cols + 3)
    lanes = to_lanes(DTYPES[name], plain, ROWS, cols)
    environment = {env.WEIGHTS: lanes, env.FLOATS: out, env.N_ROWS: len(tokens), env.TOKENS: np.array(tokens)}
    run(f"embed.{name}", [0, cols, 0, cols + 3, float_bits(scale)], environment, n_threads)
    return out, dequantize(DTYPES[name], plain, (ROWS, cols))


@pytest.mark.parametrize("name", [*BLOCK_TYPES, *FLOAT_TYPES])
def test_a_token_s_row_has_the_values_of_the_source(name: str) -> None:
    cols = {1: 33, 32: 96, 256: 512}[DTYPES[name].block_cols]
    tokens = [0, 49, 15, 16, 31, 32, 7, 7, 48]
    for n_threads in (1, 2, 3):
        out, values = embed(name, cols, tokens, 1.0, n_threads)
        assert_same_bits(out[:9, :cols] + f32(0), values[tokens] + f32(0))  # the sign of a zero may differ
        assert is_unwritten(out[9:])
        assert is_unwritten(out[:, cols:])


@pytest.mark.parametrize("name", ["q4_1", "f16"])
def test_values_are_scaled_last(name: str) -> None:
    out, values = embed(name, 64, [3, 40], 0.3, 1)
    assert_same_bits(out[:2, :64], values[[3, 40]] * f32(0.3))


@pytest.mark.parametrize("name", ["q4_1", "f16"])
@pytest.mark.parametrize(("index", "rows"), [("position", [5, 0, 33]), ("first", [0, 0, 0])])
def test_rows_are_added_to_what_is_there(name: str, index: str, rows: list[int]) -> None:
    plain = random_weights(name, ROWS, 64, np.random.default_rng(1))
    lanes, values = to_lanes(DTYPES[name], plain, ROWS, 64), dequantize(DTYPES[name], plain, (ROWS, 64))
    x = np.random.default_rng(2).standard_normal((3, 64)).astype(f32)
    expected = x + values[rows]
    environment = {env.WEIGHTS: lanes, env.FLOATS: x, env.N_ROWS: 3, env.POSITIONS: np.array([5, 0, 33])}
    run(f"embed.{name}.{index}", [0, 64, 0, 64, float_bits(1.0)], {**environment, env.TOKENS: np.array([9, 9, 9])}, 2)
    assert_same_bits(x, expected)


@pytest.mark.parametrize("name", ["q6_k", "bf16"])
def test_in_a_one_row_batch_each_thread_writes_a_row_of_its_own(name: str) -> None:
    out, values = embed(name, 256, [33], 1.0, 3)
    for tid in range(3):
        assert_same_bits(out[tid, :256] + f32(0), values[33] + f32(0))
    assert is_unwritten(out[3:])
