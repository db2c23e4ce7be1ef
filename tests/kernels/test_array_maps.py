import math

import numpy as np
import pytest

from modelc.kernels.special_functions import PLAIN
from tests.kernels.float_math import F32, assert_same_bits, tricky_floats
from tests.kernels.opcode_runner import float_bits, run, unwritten

f32 = np.float32

REFERENCES = {
    "erf": math.erf,
    "tanh": math.tanh,
    "exp": lambda x: math.exp(x) if x < 89 else math.inf,
    "log": lambda x: math.log(x) if x > 0 else -math.inf if x == 0 else math.nan,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)) if x > -700 else 0.0,
    "softplus": lambda x: max(x, 0) + math.log1p(math.exp(-abs(x))),
    "gelu": lambda x: x / 2 * math.erfc(-x / math.sqrt(2)),
}


def mapped(name: str, x: F32, n_threads: int = 1, a: float = 0.0, b: float = 0.0) -> F32:
    y = unwritten(x.size + 16)
    run(f"array_map.{name}", [x, y, x.size, float_bits(a), float_bits(b)], n_threads=n_threads)
    assert_same_bits(y[x.size :], unwritten(16))
    return y[: x.size]


@pytest.mark.parametrize("name", REFERENCES)
def test_functions_are_within_a_few_units_in_the_last_place(name: str) -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.standard_normal(2000) * 3, rng.uniform(-87, 87, 1000), 10.0 ** rng.uniform(-18, 1, 1000)])
    x = x.astype(f32)
    right = np.array([REFERENCES[name](float(value)) for value in x])
    valid = np.isfinite(right)
    error = np.abs(mapped(name, x) - right)[valid]
    scale = np.abs(right[valid]) if name not in ("gelu", "softplus", "sigmoid") else np.abs(x[valid]) + 1
    assert (error <= 4e-7 * scale + 1e-37).all()


@pytest.mark.parametrize("name", ["erf", "exp", "log", "sigmoid", "softplus", "tanh"])
def test_what_is_no_number_stays_no_number_and_infinities_have_their_limits(name: str) -> None:
    y = mapped(name, np.array([np.nan, np.inf, -np.inf], f32))
    limits = {"erf": (1, -1), "exp": (np.inf, 0), "log": (np.inf, np.nan), "sigmoid": (1, 0), "tanh": (1, -1)}
    assert np.isnan(y[0])
    assert np.allclose(y[1:], limits.get(name, (np.inf, 0)), equal_nan=True, atol=1e-37)


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_an_element_has_the_same_bits_in_every_place_and_with_every_number_of_threads(name: str) -> None:
    x = np.resize(tricky_floats(200, 3), 533)
    whole = mapped(name, x)
    for n_threads in (2, 3):
        assert_same_bits(mapped(name, x, n_threads), whole)
    for start, stop in ((0, 1), (3, 20), (500, 533)):
        assert_same_bits(mapped(name, x[start:stop].copy()), whole[start:stop])


def test_parameters_are_used() -> None:
    x = np.array([-3, -1, 0, 0.5, 4], f32)
    assert np.array_equal(mapped("clip", x, a=-2, b=1), np.clip(x, -2, 1))
    assert np.array_equal(mapped("leaky_relu", x, a=0.5), np.where(x < 0, x * f32(0.5), x))
    assert np.array_equal(mapped("affine", x, a=2, b=1), x * 2 + 1)
    assert np.allclose(mapped("elu", x, a=2, b=1), np.where(x < 0, 2 * np.expm1(x), x), atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "a", "b"),
    [
        ((5,), (5,), (1,)),
        ((2, 3, 40), (2, 3, 40), (40,)),
        ((2, 3, 40), (2, 1, 40), (3, 1)),
        ((3, 5000), (3, 5000), (3, 1)),
        ((2, 2, 2, 2, 2, 17), (2, 1, 2, 1, 2, 17), (1, 2, 1, 2, 1, 1)),
    ],
)
@pytest.mark.parametrize(
    ("name", "function"), [("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide)]
)
def test_pairs_are_broadcast(
    shape: tuple[int, ...], a: tuple[int, ...], b: tuple[int, ...], name: str, function: np.ufunc
) -> None:
    rng = np.random.default_rng(2)
    left, right = rng.standard_normal(a, f32), rng.standard_normal(b, f32)
    wide = [np.broadcast_to(x, shape) for x in (left, right)]
    table = np.zeros((3, 6), np.int64)
    table[0] = 1
    table[0, 6 - len(shape) :] = shape
    for row, x in enumerate(wide):
        table[1 + row, 6 - len(shape) :] = [step // 4 for step in x.strides]
    for n_threads in (1, 3):
        y = unwritten(*shape)
        run(f"array_pair.{name}", [left, right, y, table], n_threads=n_threads)
        assert_same_bits(y, function(*wide))
