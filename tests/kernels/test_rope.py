import numpy as np
import pytest

from modelc.kernels import env
from tests.kernels.float_math import F32, assert_same_bits, fma, sincos
from tests.kernels.opcode_runner import float_bits, is_unwritten, run, unwritten

f32 = np.float32
STYLES = ("pairs", "halves")
POSITIONS = np.array([0, 1, 2, 63, 64, 4095, 131071, 17, 5])


def frequencies(head_dim: int) -> np.ndarray:
    return 10000.0 ** (-np.arange(head_dim // 2) * 2 / head_dim)


def columns(style: str, head_dim: int) -> tuple[np.ndarray, np.ndarray]:
    """The first and second column of each rotated pair."""
    i = np.arange(head_dim // 2)
    return (2 * i, 2 * i + 1) if style == "pairs" else (i, i + head_dim // 2)


def angle_factors(style: str, head_dim: int, positions: np.ndarray, factor: float) -> F32:
    """(rows, 2, head_dim): C and S."""
    s, c = sincos(np.multiply.outer(positions.astype(np.float64), frequencies(head_dim)))
    wide = np.float64(f32(factor))
    first, second = columns(style, head_dim)
    out = np.empty((len(positions), 2, head_dim), f32)
    out[:, 0, first] = out[:, 0, second] = (c * wide).astype(f32)
    out[:, 1, first], out[:, 1, second] = (-s * wide).astype(f32), (s * wide).astype(f32)
    return out


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("factor", [1.0, 1.1])
def test_angles_have_the_bits_of_the_formula(style: str, factor: float) -> None:
    for head_dim in (16, 80):
        constants = np.concatenate([np.full(3, np.nan), frequencies(head_dim)])
        for rows, n_threads in ((9, 1), (9, 3), (2, 2), (1, 3)):
            copies = n_threads if rows == 1 else rows
            out = unwritten(copies + 1, 2, head_dim)
            environment = {env.CONSTANTS: constants, env.FLOATS: out, env.POSITIONS: POSITIONS, env.N_ROWS: rows}
            run(f"rope_angles.{style}", [3, 0, head_dim, float_bits(factor)], environment, n_threads)
            expected = angle_factors(style, head_dim, POSITIONS[:rows], factor)
            assert_same_bits(out[:copies], np.broadcast_to(expected, (copies, 2, head_dim)).copy())
            assert is_unwritten(out[copies:])


@pytest.mark.parametrize(("style", "head_dim"), [("pairs", 64), ("pairs", 16), ("halves", 80), ("halves", 16)])
@pytest.mark.parametrize("rows", [1, 2, 9])
def test_heads_are_rotated_as_the_formula_says(style: str, head_dim: int, rows: int) -> None:
    heads, stride = 5, 5 * head_dim + 7
    angles = angle_factors(style, head_dim, POSITIONS[:rows], 1.0)
    x = np.random.default_rng(head_dim).standard_normal((rows, stride), f32)
    first, second = columns(style, head_dim)
    vectors = x[:, :-7].reshape(rows, heads, head_dim)
    partner = np.empty_like(vectors)
    partner[..., first], partner[..., second] = vectors[..., second], vectors[..., first]
    expected = x.copy()
    product = partner * angles[:, None, 1]
    expected[:, :-7] = fma(vectors, angles[:, None, 0], product).reshape(rows, -1)
    for n_threads in (1, 2, 3):
        copies = np.concatenate([angles] * n_threads) if rows == 1 else angles
        memory = np.concatenate([x.reshape(-1), copies.reshape(-1)])
        environment = {env.FLOATS: memory, env.N_ROWS: rows}
        run(f"rope.{style}.{head_dim}", [0, stride, heads, x.size, head_dim], environment, n_threads)
        assert_same_bits(memory[: x.size].reshape(rows, stride), expected)
        assert_same_bits(memory[x.size :], copies.reshape(-1))


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("rows", [1, 3])
def test_columns_behind_the_rotated_ones_stay(style: str, rows: int) -> None:
    heads, head_dim, rotated = 3, 96, 48
    angles = angle_factors(style, rotated, POSITIONS[:rows], 1.0)
    x = np.random.default_rng(2).standard_normal((rows, heads, head_dim), f32)
    alone = np.ascontiguousarray(x[..., :rotated])
    for part, size in ((alone, rotated), (x, head_dim)):
        memory = np.concatenate([part.reshape(-1), angles.reshape(-1)])
        before = part.copy()
        run(
            f"rope.{style}.{rotated}",
            [0, heads * size, heads, part.size, size],
            {env.FLOATS: memory, env.N_ROWS: rows},
            1,
        )
        part[:] = memory[: part.size].reshape(part.shape)
        assert (part[1:, ..., :rotated] != before[1:, ..., :rotated]).any() or rows == 1
        assert_same_bits(part[..., rotated:], before[..., rotated:])
    assert_same_bits(np.ascontiguousarray(x[..., :rotated]), alone)


@pytest.mark.parametrize("style", STYLES)
def test_a_rotation_keeps_lengths_and_depends_on_the_distance_alone(style: str) -> None:
    first, second = columns(style, 16)
    q, k = np.random.default_rng(1).standard_normal((2, 16))

    def rotated(vector: np.ndarray, position: int) -> np.ndarray:
        partner = np.empty_like(vector)
        partner[first], partner[second] = vector[second], vector[first]
        factors = angle_factors(style, 16, np.array([position]), 1.0)[0].astype(np.float64)
        return vector * factors[0] + partner * factors[1]

    assert np.linalg.norm(rotated(q, 1000)) == pytest.approx(np.linalg.norm(q), rel=1e-6)
    assert rotated(q, 1007) @ rotated(k, 1000) == pytest.approx(rotated(q, 7) @ k, abs=1e-5)
