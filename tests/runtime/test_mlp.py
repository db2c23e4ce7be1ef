from typing import Any

import numpy as np
import pytest

from modelc.errors import BadInputError, BusyError, UnsupportedError
from modelc.ir import Model
from modelc.runtime import ops
from modelc.runtime.mlp import MAX_ROWS, Mlp
from modelc.runtime.options import Options
from tests.runtime.tiny_mlp import mlp_of

SHAPES = {
    "layer0.weight": (70, 33),
    "layer0.bias": (70,),
    "layer1.weight": (40, 70),
    "layer2.weight": (5, 40),
    "layer2.bias": (5,),
}


def array_of(model: Model, name: str) -> np.ndarray:
    tensor = model.tensors[name]
    return tensor.stored.view(np.float32).reshape(tensor.shape)


def test_hidden_layers_have_relu_and_the_last_has_none() -> None:
    model = mlp_of(SHAPES)
    x = np.random.default_rng(2).standard_normal((9, 33)).astype(np.float32)
    h = ops.relu(ops.linear(x, array_of(model, "layer0.weight"), array_of(model, "layer0.bias")))
    h = ops.relu(ops.linear(h, array_of(model, "layer1.weight")))
    expected = ops.linear(h, array_of(model, "layer2.weight"), array_of(model, "layer2.bias"))
    with Mlp(model, Options(1)) as mlp:
        found = mlp.infer(x)
    assert found.shape == (9, 5)
    assert found.dtype == np.float32
    assert np.abs(found - expected).max() < 1e-3
    assert (expected < 0).any(), "the last layer's outputs may be negative"


def test_batches_and_threads_do_not_change_a_bit() -> None:
    x = np.random.default_rng(3).standard_normal((MAX_ROWS + 70, 33)).astype(np.float32)
    bits = set()
    for threads in (1, 2, 3):
        with Mlp(mlp_of(SHAPES), Options(threads)) as mlp:
            bits.add(mlp.infer(x).tobytes())
            bits.add(np.stack([mlp.infer(row) for row in x]).tobytes())
    assert len(bits) == 1


def test_one_matrix_without_a_number() -> None:
    with Mlp(mlp_of({"weight": (2, 3), "bias": (2,)}), Options(1)) as mlp:
        assert (mlp.n_inputs, mlp.n_outputs) == (3, 2)
        assert mlp.infer([0, 0, 0]).tolist() == array_of(mlp_of({"weight": (2, 3), "bias": (2,)}), "bias").tolist()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, 2.0], "wrong length: 'input': got 2 numbers, expected 33 numbers"),
        ([[1.0] * 34], "got 34 numbers, expected 33"),
        ([], "got nothing"),
        ([[]], "got nothing"),
        (5, "not a vector"),
        ("abc", "not a vector"),
        (None, "not a vector"),
        ([1, None], "not a vector"),
        ({"x": [1]}, "not a vector"),
        ([[1.0] * 33, [1.0]], "rows of different lengths: 'input': expected 33 numbers in each"),
        (np.zeros((2, 2, 33)), r"float64 \[2, 2, 33\]"),
    ],
)
def test_what_is_no_vector_of_the_right_length_is_refused(values: Any, message: str) -> None:
    with Mlp(mlp_of(SHAPES), Options(1)) as mlp, pytest.raises(BadInputError, match=message):
        mlp.infer(values)


def test_an_mlp_says_what_it_can_do() -> None:
    with Mlp(mlp_of(SHAPES), Options(1)) as mlp:
        for asked in (mlp.generate, mlp.embed, mlp.hidden, mlp.logits, mlp.stream):
            with pytest.raises(UnsupportedError, match=r"an MLP cannot .*; it can turn numbers into numbers \(infer\)"):
                asked([1])  # type: ignore[operator]  # each takes one argument


def test_a_closed_model_says_so() -> None:
    mlp = Mlp(mlp_of({"weight": (2, 3)}), Options(1))
    mlp.close()
    mlp.close()
    with pytest.raises(BusyError, match="closed"):
        mlp.infer([1, 2, 3])
