import numpy as np
import pytest

from modelc.models.pooling import Pooling
from modelc.runtime.pooling import normalized, pool

STATES = np.array([[1, -2], [3, 4], [5, 0], [2, 2], [0, 6]], np.float32)  # a text of 3 tokens, one of 2


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("cls", [[1, -2], [2, 2]]),
        ("last", [[5, 0], [0, 6]]),
        ("max", [[5, 4], [2, 6]]),
        ("mean", [[3, 2 / 3], [1, 4]]),
        ("mean_sqrt", [[9 / 3**0.5, 2 / 3**0.5], [2 / 2**0.5, 8 / 2**0.5]]),
    ],
)
def test_each_text_becomes_one_vector(mode: str, expected: list[list[float]]) -> None:
    found = pool(STATES, [3, 2], Pooling(mode, normalized=False))
    assert found.dtype == np.float32
    assert np.abs(found - np.array(expected)).max() < 1e-6


def test_normalized_vectors_have_length_1() -> None:
    assert pool(STATES, [3, 2], Pooling("cls", normalized=True)).tolist() == [
        [np.float32(1) / np.float32(5**0.5), np.float32(-2) / np.float32(5**0.5)],
        [np.float32(2) / np.float32(8**0.5)] * 2,
    ]
    assert normalized(np.zeros((1, 3), np.float32)).tolist() == [[0, 0, 0]]


def test_the_order_of_a_sum_does_not_depend_on_other_texts() -> None:
    states = np.random.default_rng(1).standard_normal((300, 33)).astype(np.float32)
    lengths = [100, 1, 150, 49]
    together = pool(states, lengths, Pooling("mean", normalized=True))
    first = 0
    for n, vector in zip(lengths, together, strict=True):
        assert (pool(states[first : first + n], [n], Pooling("mean", normalized=True))[0] == vector).all()
        first += n
