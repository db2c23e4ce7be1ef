import numpy as np
import pytest

from modelc.kernels import env
from modelc.kernels.objects import python_function
from tests.kernels.float_math import F32, exp, sum_lanes
from tests.kernels.opcode_runner import objects, unwritten

f32 = np.float32


def log_softmax(logits: F32, top: int = 0) -> tuple[float, float, list[int]]:
    """Highest logit, sum, and the most likely tokens; nothing is read before or behind the logits."""
    n = len(logits)
    guarded = np.full(n + 32, np.inf, f32)
    guarded[16 : 16 + n] = logits
    tokens, tail = np.full(top + 1, -7), unwritten(16)
    block = np.zeros(env.N_RANKED, np.int64)
    block[env.RANKED_LOGITS] = guarded[16:].ctypes.data
    block[env.RANKED_N], block[env.RANKED_TOP] = n, top
    block[env.RANKED_TAIL], block[env.RANKED_TOKENS] = tail.ctypes.data, tokens.ctypes.data
    python_function(objects().addresses(["log_softmax"])["log_softmax"], 1, 0)(block.ctypes.data)
    assert tokens[min(top, n)] == -7
    highest, total = block.view(np.float64)[[env.RANKED_HIGHEST, env.RANKED_SUM]]
    return float(highest), float(total), tokens[: min(top, n)].tolist()


def expected_sum(logits: F32) -> float:
    """The same order in plain NumPy."""
    n = len(logits)
    e = exp(logits - logits.max())
    whole = n // 16 * 16
    total = 0.0
    for start in range(0, whole, 256):
        lanes = np.zeros(16, f32)
        for i in range(start, min(start + 256, whole), 16):
            lanes = lanes + e[i : i + 16]
        total += float(sum_lanes(lanes))
    return total + float(sum_lanes(np.pad(e[whole:], (0, whole + 16 - n))))


@pytest.mark.parametrize("n", [1, 15, 16, 17, 255, 256, 257, 1000, 4097])
def test_sum_and_rank_are_the_reference_s_bits(n: int) -> None:
    rng = np.random.default_rng(n)
    for spread in (0.1, 4.0, 100.0):
        logits = (rng.standard_normal(n) * spread).astype(f32)
        for top in (0, 1, 5, 20):
            highest, total, tokens = log_softmax(logits, top)
            assert (highest, total) == (logits.max(), expected_sum(logits))
            assert tokens == np.argsort(-logits, kind="stable")[:top].tolist()


@pytest.mark.parametrize("n", [7, 40, 300])
def test_equal_logits_rank_by_ascending_token(n: int) -> None:
    logits = np.random.default_rng(n).integers(0, 3, n).astype(f32)
    assert log_softmax(logits, 20)[2] == np.argsort(-logits, kind="stable")[:20].tolist()
    assert log_softmax(np.sort(logits), 20)[2] == np.argsort(-np.sort(logits), kind="stable")[:20].tolist()


def test_tokens_that_are_ruled_out_count_nothing_and_come_last() -> None:
    logits = np.full(50, -np.inf, f32)
    logits[[3, 40]] = 1.0, 2.0
    highest, total, tokens = log_softmax(logits, 3)
    assert (highest, tokens[:2]) == (2.0, [40, 3])
    assert total == float(exp(np.array([-1.0], f32))[0] + f32(1.0))


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@pytest.mark.parametrize("at", [0, 20, 49])
def test_a_logit_that_is_no_number_shows_in_the_sum(wrong: float, at: int) -> None:
    logits = np.zeros(50, f32)
    logits[at] = wrong
    assert not log_softmax(logits, 5)[1] <= 100
    assert not log_softmax(np.full(50, -np.inf, f32), 5)[1] <= 100
