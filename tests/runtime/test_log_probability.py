import math
from functools import cache

import numpy as np
import pytest

from modelc.kernels.objects import python_function
from modelc.runtime.log_probability import LogProbabilities
from tests.kernels.opcode_runner import objects


@cache
def log_probabilities(size: int) -> LogProbabilities:
    return LogProbabilities(python_function(objects().addresses(["log_softmax"])["log_softmax"], 1, 0), size)


def log_probability(logits: np.ndarray, token: int) -> float:
    return log_probabilities(len(logits)).of(logits, token).logprob


def exact(logits: np.ndarray) -> float:
    highest = float(logits.max())
    return highest + math.log(math.fsum(math.exp(float(value) - highest) for value in logits))


@pytest.mark.parametrize("size", [1, 2, 3, 16, 17, 1000])
@pytest.mark.parametrize("spread", [0.1, 3.0, 50.0, 1000.0])
def test_close_to_the_exact_value(size: int, spread: float) -> None:
    logits = (np.random.default_rng(size).standard_normal(size) * spread).astype(np.float32)
    assert log_probability(logits, size - 1) == pytest.approx(float(logits[-1]) - exact(logits), rel=1e-6, abs=1e-6)


def test_a_token_s_log_probability_is_that_of_the_softmax() -> None:
    logits = np.array([0.0, math.log(3.0)], np.float32)
    assert log_probability(logits, 0) == pytest.approx(math.log(0.25), abs=1e-7)
    assert log_probability(logits, 1) == pytest.approx(math.log(0.75), abs=1e-7)
    assert log_probability(np.zeros(64, np.float32), 5) == pytest.approx(-math.log(64), abs=1e-14)
    assert log_probability(np.array([7.5], np.float32), 0) == 0.0


def test_the_most_likely_tokens_come_with_theirs_the_best_first() -> None:
    logits = np.array([0.0, 2.0, 1.0, 2.0], np.float32)
    found = log_probabilities(4).of(logits, 2, top=3)
    assert [token for token, _ in found.top] == [1, 3, 2]
    assert [value for _, value in found.top] == [log_probability(logits, token) for token in (1, 3, 2)]
    assert found.logprob == found.top[2][1]
    assert len(log_probabilities(4).of(logits, 2, top=20).top) == 4  # no more than there are


def test_the_bits_are_always_these() -> None:
    logits = ((np.arange(1000) * 37 % 101 - 50) * 0.125).astype(np.float32)
    assert log_probability(logits, 0).hex() == "-0x1.0f03e7b7177e2p+4"


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_logits_that_are_no_numbers_give_no_number(wrong: float) -> None:
    assert math.isnan(log_probability(np.array([1.0, wrong], np.float32), 0))
    assert log_probability(np.array([1.0, -math.inf], np.float32), 1) == -math.inf
