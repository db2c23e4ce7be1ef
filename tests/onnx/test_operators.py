"""Where the versions of operators differ, and what the `onnx` package's cases leave out."""

import ml_dtypes
import numpy as np
import pytest

from modelc.errors import ModelcError
from tests.onnx.graphs import assert_same, single

f32 = np.float32
RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 3, 4)).astype(f32)


def soft(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    e = np.exp(x - x.max(axis=axes, keepdims=True))
    return e / e.sum(axis=axes, keepdims=True)


def test_softmax_before_version_13_is_over_all_dimensions_from_its_axis_on() -> None:
    assert np.allclose(single("Softmax", X, opset=11), soft(X, (1, 2)), atol=1e-7)
    assert np.allclose(single("Softmax", X, opset=13), soft(X, (2,)), atol=1e-7)
    assert np.allclose(single("LogSoftmax", X, opset=12, axis=2), np.log(soft(X, (2,))), atol=1e-6)


def test_axes_are_attributes_first_and_inputs_later() -> None:
    axes = np.array([0, 2])
    for op, right in (("ReduceSum", X.sum((0, 2), keepdims=True)), ("Unsqueeze", X[None][:, :, None])):
        assert np.allclose(single(op, X, opset=12, axes=[0, 2]), right, atol=1e-6)
        assert np.allclose(single(op, X, axes, opset=13), right, atol=1e-6)
    assert_same(single("Squeeze", X[:1, :, :1], opset=12, axes=[0, 2]), X[0, :, 0])
    assert_same(single("Squeeze", X[:1, :, :1], axes, opset=13), X[0, :, 0])
    assert np.allclose(single("ReduceMax", X, opset=17, axes=[1]), X.max(1, keepdims=True))
    assert np.allclose(single("ReduceMax", X, np.array([1]), opset=18), X.max(1, keepdims=True))


def test_limits_pads_and_parts_are_attributes_first_and_inputs_later() -> None:
    low, high = np.array(-0.5, f32), np.array(0.25, f32)
    assert_same(single("Clip", X, opset=7, min=-0.5, max=0.25), X.clip(-0.5, 0.25))
    assert_same(single("Clip", X, low, high, opset=11), X.clip(-0.5, 0.25))
    assert_same(single("Clip", X, None, high, opset=12), np.minimum(X, high))
    padded = np.pad(X, [(0, 0), (1, 0), (0, 2)], constant_values=3)
    assert_same(single("Pad", X, opset=10, pads=[0, 1, 0, 0, 0, 2], value=3.0), padded)
    assert_same(single("Pad", X, np.array([0, 1, 0, 0, 0, 2]), np.array(3, f32), opset=11), padded)
    assert_same(single("Slice", X, opset=9, starts=[1, 0], ends=[9, -1], axes=[1, 2]), X[:, 1:, :-1])
    by_inputs = [np.array(each) for each in ([1, 0], [9, -1], [1, 2])]
    assert_same(single("Slice", X, *by_inputs, opset=10), X[:, 1:, :-1])
    for found in (
        single("Split", X, opset=11, n_outputs=2, axis=2, split=[1, 3]),
        single("Split", X, np.array([1, 3]), opset=13, n_outputs=2, axis=2),
    ):
        assert_same(found[0], X[:, :, :1])
        assert_same(found[1], X[:, :, 1:])


def test_a_size_of_zero_in_a_reshape_keeps_the_old_one_unless_it_is_allowed() -> None:
    assert single("Reshape", X, np.array([0, -1]), opset=14).shape == (2, 12)
    empty = np.zeros((0, 3), f32)
    assert single("Reshape", empty, np.array([3, 0]), opset=14, allowzero=1).shape == (3, 0)


def test_dropout_is_the_identity_unless_it_is_trained() -> None:
    assert_same(single("Dropout", X, opset=10, ratio=0.9), X)
    assert_same(single("Dropout", X, np.array(0.9, f32), opset=13), X)


def test_an_upsample_is_a_resize_with_asymmetric_places() -> None:
    image = X[None, :, :2]
    right = image.repeat(2, 2).repeat(3, 3)
    assert_same(single("Upsample", image, opset=7, scales=[1.0, 1.0, 2.0, 3.0]), right)
    scales = np.array([1, 1, 2, 3], f32)
    assert_same(single("Upsample", image, scales, opset=9), right)
    assert_same(single("Resize", image, scales, opset=10), right)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64, np.int32, np.int64, np.uint8])
def test_products_are_made_in_every_type(dtype: type) -> None:
    a, b = (RNG.integers(0, 5, shape).astype(dtype) for shape in ((2, 3, 4), (4, 5)))
    y = single("MatMul", a, b)
    assert y.dtype == dtype
    assert np.array_equal(y.astype(float), a.astype(float) @ b.astype(float))


def convolved(
    x: np.ndarray, w: np.ndarray, groups: int, strides: list[int], pads: list[int], apart: list[int]
) -> np.ndarray:
    n = x.ndim - 2
    x = np.pad(x.astype(float), [(0, 0), (0, 0), *zip(pads[:n], pads[n:], strict=True)])
    out = [(s - (k - 1) * d - 1) // t + 1 for s, k, d, t in zip(x.shape[2:], w.shape[2:], apart, strides, strict=True)]
    y = np.zeros((len(x), len(w), *out))
    rows, channels = len(w) // groups, w.shape[1]
    for o in range(len(w)):
        part = x[:, o // rows * channels : (o // rows + 1) * channels]
        for place in np.ndindex(*out):
            window = part[
                (
                    ...,
                    *(
                        slice(p * t, p * t + (k - 1) * d + 1, d)
                        for p, t, k, d in zip(place, strides, w.shape[2:], apart, strict=True)
                    ),
                )
            ]
            y[(slice(None), o, *place)] = (window * w[o]).sum(tuple(range(1, n + 2)))
    return y


@pytest.mark.parametrize(
    ("x", "w", "groups", "strides", "pads", "apart"),
    [
        ((2, 4, 20), (6, 2, 3), 2, [1], [1, 2], [1]),
        ((1, 3, 9, 40), (5, 3, 3, 3), 1, [1, 1], [1, 1, 1, 1], [1, 1]),
        ((1, 4, 9, 11), (4, 1, 3, 2), 4, [2, 3], [0, 1, 2, 1], [2, 1]),
        ((1, 2, 5, 6, 7), (3, 2, 2, 3, 2), 1, [1, 2, 1], [0, 1, 1, 1, 0, 0], [1, 1, 2]),
        ((1, 2, 3, 4, 3, 4), (2, 2, 2, 2, 2, 2), 1, [1, 1, 1, 1], [0] * 8, [1, 1, 1, 1]),
    ],
)
@pytest.mark.parametrize("dtype", [f32, np.float16, np.float64])
def test_convolutions_of_one_to_four_dimensions(x, w, groups, strides, pads, apart, dtype) -> None:
    image, weight = RNG.standard_normal(x).astype(dtype), RNG.standard_normal(w).astype(dtype)
    bias = RNG.standard_normal(w[0]).astype(dtype)
    y = single("Conv", image, weight, bias, group=groups, strides=strides, pads=pads, dilations=apart)
    right = convolved(image, weight, groups, strides, pads, apart) + bias.reshape(-1, *[1] * (len(x) - 2))
    assert y.dtype == dtype
    assert np.allclose(y, right, rtol=2e-2 if dtype == np.float16 else 1e-4, atol=2e-2 if dtype == np.float16 else 1e-5)


def test_integer_products_are_exact_beyond_what_float32_holds() -> None:
    a, b = np.full((2, 3000), 255, np.uint8), np.full((3000, 3), 127, np.int8)
    for constants in ((), (1, 3)):
        y = single("MatMulInteger", a, b, np.array(1, np.uint8), np.array(-128, np.int8), constants=constants)
        assert y.dtype == np.int32 and (y == 3000 * 254 * 255).all()


def test_lstm_by_instructions_is_lstm_in_python() -> None:
    x, w, r = (RNG.standard_normal(shape).astype(f32) for shape in ((5, 2, 3), (2, 16, 3), (2, 16, 4)))
    b, h = RNG.standard_normal((2, 32)).astype(f32), RNG.standard_normal((2, 2, 4)).astype(f32)
    options = {"hidden_size": 4, "direction": "bidirectional", "n_outputs": 3}
    lowered = single("LSTM", x, w, r, b, None, h, h, constants=(1, 2, 3), **options)
    python = single("LSTM", x, w, r, b, np.array([5, 5], np.int32), h, h, **options)
    for a, c in zip(lowered, python, strict=True):
        assert np.allclose(a, c, atol=2e-6)


def test_sums_and_means_keep_their_precision() -> None:
    x = np.full((3, 100_000), 0.1, f32)
    assert np.allclose(single("ReduceMean", x, axes=[1]), 0.1, rtol=1e-5)
    assert np.allclose(single("ReduceSum", x.T, np.array([0])), 10_000, rtol=1e-5)


def test_attention_without_keys_to_see_gives_zeros() -> None:
    q = RNG.standard_normal((1, 1, 2, 8)).astype(f32)
    mask = np.array([[True, True], [False, False]])
    y = single("Attention", q, q, q, mask, opset=23)
    assert not y[0, 0, 1].any() and y[0, 0, 0].any()


def test_random_numbers_with_a_seed_are_the_same_and_others_without() -> None:
    draws = [single("RandomNormal", shape=[1000], seed=3.0) for _ in range(2)]
    assert_same(*draws)
    assert abs(draws[0].mean()) < 0.1 and abs(draws[0].std() - 1) < 0.1
    with pytest.raises(AssertionError):
        single("RandomUniform", shape=[4])  # three runs of one graph are compared


MICROSOFT = {
    "FusedMatMul": lambda: (
        single("FusedMatMul", X, X, domain="com.microsoft", transB=1, alpha=0.5),
        X @ X.transpose(0, 2, 1) / 2,
    ),
    "BiasGelu": lambda: (
        single("BiasGelu", X, X[0, 0], domain="com.microsoft"),
        single("Gelu", X + X[0, 0], opset=20),
    ),
    "SkipLayerNormalization": lambda: (
        single("SkipLayerNormalization", X, X, X[0, 0], X[0, 1], domain="com.microsoft", epsilon=1e-5),
        single("LayerNormalization", X + X, X[0, 0], X[0, 1], epsilon=1e-5),
    ),
    "SkipSimplifiedLayerNormalization": lambda: (
        single("SkipSimplifiedLayerNormalization", X, X, X[0, 0], domain="com.microsoft", epsilon=1e-5),
        single("RMSNormalization", X + X, X[0, 0], opset=23, epsilon=1e-5),
    ),
    "MatMulNBits": lambda: (
        single(
            "MatMulNBits",
            X[0, :1].repeat(4, 1)[:, :16],
            np.full((2, 1, 8), 0x98, np.uint8),
            np.array([1, 2], f32),
            domain="com.microsoft",
            K=16,
            N=2,
            bits=4,
            block_size=16,
        ),
        X[0, :1].repeat(4, 1)[:, 1::2].sum(1, keepdims=True) * np.array([1, 2]),
    ),
}


@pytest.mark.parametrize("name", MICROSOFT)
def test_operators_of_onnx_runtime(name: str) -> None:
    y, right = MICROSOFT[name]()
    assert np.allclose(y, right, atol=2e-6)


def test_a_linear_classifier_gives_labels_and_shares() -> None:
    x = np.array([[1, 0], [0, 2]], f32)
    options = {"coefficients": [1.0, 0.0, 0.0, 1.0, 1.0, 1.0], "intercepts": [0.0, 0.5, -9.0], "domain": "ai.onnx.ml"}
    labels, shares = single(
        "LinearClassifier", x, n_outputs=2, classlabels_strings=["a", "b", "c"], post_transform="SOFTMAX", **options
    )
    assert labels.tolist() == ["a", "b"]
    assert np.allclose(shares, soft(np.array([[1, 0.5, -8], [0, 2.5, -7]]), (1,)))


def test_trees_are_walked_and_their_leaves_added() -> None:
    """Two trees: x0 <= 1 ? 10 : 20, and x1 > 0 ? 1 : 2; missing values follow `nodes_missing_value_tracks_true`."""
    trees = {
        "nodes_treeids": [0, 0, 0, 1, 1, 1],
        "nodes_nodeids": [0, 1, 2, 0, 1, 2],
        "nodes_featureids": [0, 0, 0, 1, 0, 0],
        "nodes_values": [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0, 1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0, 2, 0, 0],
        "nodes_missing_value_tracks_true": [1, 0, 0, 0, 0, 0],
        "target_treeids": [0, 0, 1, 1],
        "target_nodeids": [1, 2, 1, 2],
        "target_ids": [0, 0, 0, 0],
        "target_weights": [10.0, 20.0, 1.0, 2.0],
    }
    x = np.array([[1, 1], [1.5, 0], [np.nan, np.nan]], f32)
    y = single("TreeEnsembleRegressor", x, domain="ai.onnx.ml", n_targets=1, base_values=[0.5], **trees)
    assert y.tolist() == [[11.5], [22.5], [12.5]]
    trees["nodes_falsenodeids"] = [0, 0, 0, 2, 0, 0]
    with pytest.raises(ModelcError, match="a tree has a cycle"):
        single("TreeEnsembleRegressor", x, domain="ai.onnx.ml", n_targets=1, **trees)


def test_what_prepares_inputs_of_classical_models() -> None:
    x = np.array([[3, -4], [0, np.nan]], f32)
    scaled = single("Scaler", x[:1], domain="ai.onnx.ml", offset=[1.0, 2.0], scale=[2.0, 0.5])
    assert scaled.tolist() == [[4, -3]]
    assert np.allclose(single("Normalizer", x[:1], domain="ai.onnx.ml", norm="L2"), [[0.6, -0.8]])
    filled = single(
        "Imputer", x, domain="ai.onnx.ml", imputed_value_floats=[7.0, 8.0], replaced_value_float=float("nan")
    )
    assert filled.tolist() == [[3, -4], [0, 8]]
    words = np.array(["b", "z"], object)
    options = {"keys_strings": ["a", "b"], "values_int64s": [1, 2], "domain": "ai.onnx.ml"}
    assert single("LabelEncoder", words, **options).tolist() == [2, -1]


def test_what_a_form_of_an_operator_lacks_is_said() -> None:
    with pytest.raises(ModelcError, match=r"\(com.microsoft.Attention\): this form of Attention is not supported"):
        single("Attention", X, X[0].T, domain="com.microsoft", num_heads=1, do_rotary=1)
