import math

import numpy as np
import pytest

from bench.accuracy import divergences, log_probs_at, mean_divergence


def test_log_probs_are_those_of_a_softmax_over_the_whole_row() -> None:
    logits = np.array([[0.0, math.log(3)], [1000.0, 1000.0]], np.float32)
    found = log_probs_at(logits, [[1, 0], [0, 0]])
    assert np.exp(found) == pytest.approx(np.array([[0.75, 0.25], [0.5, 0.5]]), abs=1e-7)


def test_divergence_counts_all_other_tokens_as_one() -> None:
    expected = np.log([[0.5, 0.25]])  # the rest has 0.25
    swapped, without_rest = np.log([[0.25, 0.5]]), np.log([[0.5, 0.375]])
    assert divergences(expected, swapped) == pytest.approx([0.25 * math.log(2)])
    assert divergences(expected, without_rest) == pytest.approx([0.25 * math.log(2 / 3) + 0.25 * math.log(2)])


def test_divergence_is_nothing_for_equal_probabilities_even_without_a_rest() -> None:
    certain = np.log([[1.0, 1e-9]])
    assert divergences(certain, certain) == pytest.approx([0.0], abs=1e-15)


def test_mean_divergence_weighs_every_position_alike() -> None:
    half, quarter = math.log(0.5), math.log(0.25)
    cases = [
        {"ids": [1], "top_ids": [[5, 6]], "top_logprobs": [[half, quarter]]},
        {"ids": [2, 3, 4], "top_ids": [[5, 6]] * 3, "top_logprobs": [[quarter, half]] * 3},
    ]
    found = mean_divergence(cases, lambda ids, wanted: [[quarter, half]] * len(ids))
    assert found == pytest.approx(0.25 * math.log(2) / 4)
