import numpy as np
import pytest

from modelc.kernels import env
from modelc.kernels.objects import python_function
from tests.kernels.opcode_runner import objects


def found(tokens: list[int], limit: int, allowed: int) -> dict[int, int]:
    """Lengths by distance, from the compiled function."""
    n = len(tokens)
    sequence, lengths, places = np.array(tokens, np.int64), np.full(n, -9, np.int64), np.full(n, -9, np.int64)
    block = np.zeros(env.N_REPEATS, np.int64)
    block[env.REPEATS_TOKENS], block[env.REPEATS_N] = sequence.ctypes.data, n
    block[env.REPEATS_LIMIT], block[env.REPEATS_ALLOWED] = limit, allowed
    block[env.REPEATS_LENGTHS], block[env.REPEATS_FOUND] = lengths.ctypes.data, places.ctypes.data
    (count,) = python_function(objects().addresses(["repeats"])["repeats"], 1, 1)(block.ctypes.data)
    return {k: int(lengths[k]) for k in places[:count].tolist()}


def expected(tokens: list[int], limit: int, allowed: int) -> dict[int, int]:
    """By comparing everything with everything."""
    newest_first = tokens[::-1]
    lengths = {}
    for k in range(1, len(tokens)):
        length = 0
        while k + length < len(tokens) and newest_first[length] == newest_first[k + length]:
            length += 1
        lengths[k] = min(length, limit)
    return {k: length for k, length in lengths.items() if length >= allowed}


def test_a_repetition_is_found_where_it_began() -> None:
    assert found([1, 2, 3, 9, 1, 2, 3], 7, 2) == {4: 3}
    assert found([1, 2, 3, 9, 1, 2, 3], 2, 2) == {4: 2}, "no longer than the limit"
    assert found([1, 2, 3, 9, 1, 2, 3], 7, 4) == {}
    assert found([5, 5, 5, 5], 7, 2) == {1: 3, 2: 2}


@pytest.mark.parametrize("n_kinds", [1, 2, 5, 100])
def test_all_sequences_are_as_by_plain_comparison(n_kinds: int) -> None:
    rng = np.random.default_rng(n_kinds)
    for n in (1, 2, 3, 10, 60, 200):
        tokens = [int(t) for t in rng.integers(0, n_kinds, n)]
        for limit, allowed in ((n, 1), (n, 2), (3, 1), (0, 0), (n, 0)):
            assert found(tokens, limit, allowed) == expected(tokens, limit, allowed)
