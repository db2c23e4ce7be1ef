"""Operations on arrays: values against float64, bits against sums written out, and every refusal."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from modelc.errors import BadInputError
from modelc.models.frequencies import RopeScaling
from modelc.runtime import elementary, ops

RANDOM = np.random.default_rng(0)


def normal(*shape: int) -> npt.NDArray[np.float32]:
    return RANDOM.standard_normal(shape).astype(np.float32)


def wide(function: object, x: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    return np.vectorize(function)(x.astype(np.float64))  # type: ignore[call-overload]


@pytest.mark.parametrize(("ours", "theirs", "reach"), [(elementary.exp, math.exp, 700), (elementary.erf, math.erf, 7)])
def test_elementary_functions_are_exact_to_the_last_bits(ours: object, theirs: object, reach: float) -> None:
    x = np.linspace(-reach, reach, 20001)
    expected = np.vectorize(theirs)(x)  # type: ignore[call-overload]
    assert (np.abs(ours(x) - expected) <= 1e-14 * np.abs(expected)).all()  # type: ignore[operator]


def test_sine_and_cosine_of_large_angles() -> None:
    x = RANDOM.uniform(-4e6, 4e6, 20000)
    sine, cosine = elementary.sincos(x)
    assert np.abs(sine - np.sin(x)).max() < 1e-15
    assert np.abs(cosine - np.cos(x)).max() < 1e-15


def test_elementary_functions_keep_nan_and_reach_their_limits() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0])
    assert np.array_equal(elementary.exp(x), [np.nan, np.inf, 0, 1], equal_nan=True)
    assert np.array_equal(elementary.erf(x), [np.nan, 1, -1, 0], equal_nan=True)


def test_a_sum_is_folded_in_half_until_one_is_left() -> None:
    f = np.float32
    a = np.array([[1e8, 1.5, -3.25, -1e8, 0.1]], f)
    products = [x * f(1) for x in a[0]]
    first = [products[0] + products[3], products[1] + products[4], products[2]]
    expected = (first[0] + first[2]) + first[1]
    assert ops.matmul(a, np.ones((5, 1), f))[0, 0] == expected


@pytest.mark.parametrize("shapes", [((7, 33), (33, 5)), ((2, 3, 4, 8), (3, 8, 6)), ((1, 1), (1, 1)), ((0, 3), (3, 2))])
def test_matmul_is_the_product_of_matrices(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = normal(*shapes[0]), normal(*shapes[1])
    expected = a.astype(np.float64) @ b.astype(np.float64)
    found = ops.matmul(a, b)
    assert found.dtype == np.float32
    assert found.shape == expected.shape
    assert np.allclose(found, expected, atol=1e-5)


def test_a_rows_bits_depend_on_nothing_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    x, weight = normal(9, 70), normal(31, 70)
    whole = ops.linear(x, weight)
    monkeypatch.setattr(ops, "CHUNK_ELEMENTS", 100)
    assert np.array_equal(ops.linear(x, weight), whole)
    assert all(np.array_equal(ops.linear(row, weight), expected) for row, expected in zip(x, whole, strict=True))


def test_linear_adds_the_bias() -> None:
    x, weight, bias = normal(2, 3, 8), normal(5, 8), normal(5)
    assert np.array_equal(ops.linear(x, weight, bias), ops.linear(x, weight) + bias)
    assert ops.linear(x, weight).shape == (2, 3, 5)


def test_softmax() -> None:
    x = normal(4, 9) * 20
    powers = np.exp(x.astype(np.float64) - x.max(axis=0))
    assert np.allclose(ops.softmax(x, axis=0), powers / powers.sum(axis=0), rtol=1e-6)
    assert ops.softmax([1e30, 1e30, -1e30]).tolist() == [0.5, 0.5, 0]
    assert ops.softmax([-np.inf, -np.inf]).tolist() == [0, 0]


def test_rows_without_columns_stay_so() -> None:
    empty = np.zeros((2, 0))
    for function in (ops.softmax, ops.layer_norm, ops.rms_norm, ops.silu):
        assert function(empty).shape == (2, 0)
    assert ops.linear(empty, np.zeros((3, 0))).tolist() == [[0, 0, 0]] * 2


def test_norms() -> None:
    x, weight, bias = normal(3, 50) * 5 + 2, normal(50), normal(50)
    y = x.astype(np.float64)
    layer = (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + 1e-5)
    assert np.allclose(ops.layer_norm(x, weight, bias), layer * weight + bias, atol=1e-5)
    assert np.allclose(ops.layer_norm(x), layer, atol=1e-6)
    rms = y / np.sqrt((y * y).mean(-1, keepdims=True) + 1e-3)
    assert np.allclose(ops.rms_norm(x, weight, eps=1e-3), rms * weight, atol=1e-5)


def test_activations() -> None:
    x = np.append(np.linspace(-12, 12, 1001), 0).astype(np.float32)
    assert np.allclose(ops.silu(x), wide(lambda v: v / (1 + math.exp(-v)), x), rtol=2e-7, atol=0)
    assert np.allclose(ops.sigmoid(x), wide(lambda v: 1 / (1 + math.exp(-v)), x), rtol=2e-7, atol=0)
    assert np.allclose(ops.gelu(x), wide(lambda v: v * (1 + math.erf(v / math.sqrt(2))) / 2, x), rtol=2e-7, atol=1e-13)
    cubic = wide(lambda v: v / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))), x)
    assert np.allclose(ops.gelu(x, "tanh"), cubic, rtol=2e-7, atol=1e-13)
    assert ops.relu([-1.0, 0.0, 2.0]).tolist() == [0, 0, 2]


def test_activations_at_infinity() -> None:
    for activation in (ops.silu, ops.gelu, lambda x: ops.gelu(x, "tanh")):
        assert np.array_equal(activation([np.inf, -np.inf, np.nan]), [np.inf, 0, np.nan], equal_nan=True)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rope_turns_pairs_of_columns(interleaved: bool) -> None:
    x, positions = normal(2, 5, 8), np.array([0, 1, 7, 4095, 100000])
    found = ops.rope(x, positions, 500.0, interleaved=interleaved)
    first, second = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :4], x[..., 4:])
    turned = (first + 1j * second) * np.exp(1j * positions[:, None] * 500.0 ** (-np.arange(4) / 4))
    expected = np.stack([turned.real, turned.imag], -1).reshape(2, 5, 8)
    if not interleaved:
        expected = np.concatenate([turned.real, turned.imag], -1)
    assert np.allclose(found, expected, atol=1e-6)
    assert np.array_equal(found[:, 0], x[:, 0])


def test_rope_with_scaling_turns_less() -> None:
    x = normal(3, 4)
    scaled = ops.rope(x, [0, 2, 4], scaling=RopeScaling("linear", 2.0))
    assert np.array_equal(scaled, ops.rope(x, [0, 1, 2]))


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_the_mean_of_values_by_softmax_of_scores(causal: bool) -> None:
    q, k, v = normal(2, 4, 3, 8), normal(2, 2, 5, 8), normal(2, 2, 5, 6)
    keys, values = (np.repeat(x, 2, axis=1).astype(np.float64) for x in (k, v))
    scores = q @ np.swapaxes(keys, -1, -2) / math.sqrt(8)
    if causal:
        scores[..., np.arange(5) > np.arange(3)[:, None] + 2] = -np.inf
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    expected = powers / powers.sum(-1, keepdims=True) @ values
    assert np.allclose(ops.attention(q, k, v, causal=causal), expected, atol=1e-6)


def test_attention_hides_what_the_mask_hides() -> None:
    q, k, v = normal(1, 2, 8), normal(1, 4, 8), normal(1, 4, 8)
    mask = np.array([[True, True, False, False], [False] * 4])
    found = ops.attention(q, k, v, mask=mask)
    assert np.allclose(found[0, 0], ops.attention(q, k[:, :2], v[:, :2])[0, 0], atol=1e-7)
    assert (found[0, 1] == 0).all()


def test_arguments_are_not_changed() -> None:
    x = normal(4, 8)
    before = x.copy()
    for result in (ops.softmax(x), ops.relu(x), ops.layer_norm(x, x[0]), ops.rope(x, range(4)), ops.linear(x, x)):
        result.fill(1)
    assert np.array_equal(x, before)


@pytest.mark.parametrize(
    ("call", "param"),
    [
        (lambda: ops.matmul(normal(2, 3), normal(4, 5)), "b"),
        (lambda: ops.matmul(normal(2, 2, 3), normal(3, 3, 5)), "b"),
        (lambda: ops.matmul(normal(3), normal(3, 5)), "a"),
        (lambda: ops.linear(normal(3), normal(2, 4)), "weight"),
        (lambda: ops.linear(normal(3), normal(1, 2, 3)), "weight"),
        (lambda: ops.linear(normal(3), normal(2, 3), normal(3)), "bias"),
        (lambda: ops.layer_norm(normal(2, 3), normal(2)), "weight"),
        (lambda: ops.rope(normal(2, 3), [0, 1]), "x"),
        (lambda: ops.rope(normal(2, 4), [0, 1, 2]), "positions"),
        (lambda: ops.rope(normal(2, 4), [0.5, 1]), "positions"),
        (lambda: ops.attention(normal(4, 1, 8), normal(3, 1, 8), normal(3, 1, 8)), "k"),
        (lambda: ops.attention(normal(4, 1, 8), normal(2, 1, 8), normal(2, 2, 8)), "v"),
        (lambda: ops.gelu([1.0], "erf"), "approximate"),  # type: ignore[arg-type]
        (lambda: ops.relu("text"), "x"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(call: object, param: str) -> None:
    with pytest.raises(BadInputError) as error:
        call()  # type: ignore[operator]
    assert error.value.param == param


X = np.ones((2, 3), np.float32)
HEADS = np.ones((2, 2, 4), np.float32)
RAGGED = [[1.0], [1.0, 2.0]]


@pytest.mark.parametrize(
    ("call", "param"),
    [
        (lambda: ops.matmul(RAGGED, X), "a"),
        (lambda: ops.linear(X, "abc"), "weight"),
        (lambda: ops.softmax(X, axis=2), "axis"),
        (lambda: ops.softmax(X, axis=None), "axis"),
        (lambda: ops.layer_norm(X, eps="a"), "eps"),
        (lambda: ops.rms_norm(X, eps=float("nan")), "eps"),
        (lambda: ops.rope(HEADS[0], RAGGED), "positions"),
        (lambda: ops.rope(HEADS[0], [0, 1], theta=0), "theta"),
        (lambda: ops.rope(HEADS[0], [0, 1], scaling=5), "scaling"),
        (lambda: ops.attention(HEADS, HEADS, HEADS, scale="a"), "scale"),
        (lambda: ops.attention(HEADS, HEADS, HEADS, mask=np.ones((9, 9))), "mask"),
        (lambda: ops.gelu(None), "x"),
    ],
)
def test_an_argument_of_another_kind_is_named(call: Callable[[], object], param: str) -> None:
    with pytest.raises(BadInputError) as caught:
        call()
    assert caught.value.param == param
