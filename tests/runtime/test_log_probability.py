import math

import numpy as np
import pytest

from modelc.runtime.log_probability import log_probability, log_sum_exp


def exact(logits: np.ndarray) -> float:
    highest = float(logits.max())
    return highest + math.log(math.fsum(math.exp(float(value) - highest) for value in logits))


@pytest.mark.parametrize("size", [1, 2, 3, 16, 17, 1000])
@pytest.mark.parametrize("spread", [0.1, 3.0, 50.0, 1000.0])
def test_close_to_the_exact_value(size: int, spread: float) -> None:
    logits = (np.random.default_rng(size).standard_normal(size) * spread).astype(np.float32)
    assert log_sum_exp(logits) == pytest.approx(exact(logits), abs=1e-12)


def test_a_token_s_log_probability_is_that_of_the_softmax() -> None:
    logits = np.array([0.0, math.log(3.0)], np.float32)
    assert log_probability(logits, 0) == pytest.approx(math.log(0.25), abs=1e-7)
    assert log_probability(logits, 1) == pytest.approx(math.log(0.75), abs=1e-7)
    assert log_probability(np.zeros(64, np.float32), 5) == pytest.approx(-math.log(64), abs=1e-14)
    assert log_probability(np.array([7.5], np.float32), 0) == 0.0


def test_the_bits_are_always_these() -> None:
    logits = ((np.arange(1000) * 37 % 101 - 50) * 0.125).astype(np.float32)
    assert log_sum_exp(logits).hex() == "0x1.5607cf69e4f98p+3"


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_logits_that_are_no_numbers_give_no_number(wrong: float) -> None:
    assert math.isnan(log_probability(np.array([1.0, wrong], np.float32), 0))
    assert log_probability(np.array([1.0, -math.inf], np.float32), 1) == -math.inf
