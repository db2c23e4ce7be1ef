import numpy as np
import pytest

from tests.kernels.float_math import assert_same_bits
from tests.kernels.opcode_runner import run, unwritten
from tests.kernels.test_array_gemm import product

f32 = np.float32


@pytest.mark.parametrize(("m", "groups"), [(1, 3), (5, 1), (8, 2), (19, 1)])
@pytest.mark.parametrize("n", [1, 15, 16, 40, 70, 300])
def test_positions_of_all_groups_have_the_bits_of_a_product(m: int, groups: int, n: int) -> None:
    rng = np.random.default_rng(m * n)
    images, k, size = 2, 600, n + 90
    w, bias = rng.standard_normal((groups, m, k), f32), rng.standard_normal((groups, m), f32)
    x = rng.standard_normal((images, groups, size), f32)
    offsets = rng.integers(0, size - n, k)
    expected = np.stack(
        [
            [
                product(w[g], np.stack([x[i, g, at : at + n] for at in offsets])) + bias[g][:, None]
                for g in range(groups)
            ]
            for i in range(images)
        ]
    )
    for n_threads in (1, 2, 3):
        memory = unwritten(expected.size + 16)
        y = memory[: expected.size].reshape(expected.shape)
        run("array_conv", [w, x, y, m, n, k, images, groups, size, offsets, bias], n_threads=n_threads)
        assert_same_bits(y, expected)
        assert_same_bits(memory[expected.size :], unwritten(16))


def test_without_a_bias_nothing_is_added() -> None:
    w, x, y = np.full((1, 2, 1), 3, f32), np.arange(20, dtype=f32), unwritten(2, 20)
    run("array_conv", [w, x, y, 2, 20, 1, 1, 1, 20, np.zeros(1, np.int64), 0])
    assert_same_bits(y, np.stack([x * 3, x * 3]))
