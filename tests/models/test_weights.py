import ctypes

import numpy as np
import pytest

from modelc.dtypes import DTYPES
from modelc.errors import BadFileError
from modelc.ir import Model, Tensor
from modelc.layout import to_lanes
from modelc.models.hugging_face import HuggingFace
from modelc.models.weights import Weights
from tests.kernels.stored_blocks import random_weights

SHAPES = {"a.weight": (20, 32), "b.weight": (16, 64), "norm.weight": (8,)}


def model() -> Model:
    rng = np.random.default_rng(1)
    norm = np.arange(8, dtype=np.float16)
    tensors = [
        Tensor("a.weight", DTYPES["q4_0"], (20, 32), random_weights("q4_0", 20, 32, rng)),
        Tensor("b.weight", DTYPES["f16"], (16, 64), random_weights("f16", 16, 64, rng)),
        Tensor("norm.weight", DTYPES["f16"], (8,), norm.view(np.uint8)),
        Tensor("plain.weight", DTYPES["f32"], (3,), np.array([1, 2, 3], np.float32).view(np.uint8)),
    ]
    return Model("m", "llama", "gguf", {}, {tensor.name: tensor for tensor in tensors})


def test_matrices_lie_in_lanes_at_their_offset_from_the_base() -> None:
    source = model()
    weights = Weights(source, SHAPES)
    for name in ("a.weight", "b.weight"):
        tensor = source.tensors[name]
        expected = to_lanes(tensor.dtype, tensor.stored, *tensor.shape)
        matrix = weights.matrix(name)
        assert (matrix.dtype, matrix.rows, matrix.cols) == (tensor.dtype.name, *tensor.shape)
        assert matrix.offset >= 0
        assert ctypes.string_at(weights.base + matrix.offset, expected.size) == expected.tobytes()


def test_matrices_that_are_in_lanes_already_are_used_in_place() -> None:
    source = model()
    plain = source.tensors["a.weight"]
    lanes = to_lanes(plain.dtype, plain.stored, *plain.shape)
    source.tensors["a.weight"] = Tensor("a.weight", plain.dtype, plain.shape, lanes, "lanes")
    weights = Weights(source, SHAPES)
    assert weights.base + weights.matrix("a.weight").offset == lanes.ctypes.data


def test_rows_of_a_matrix_are_a_matrix_of_their_own() -> None:
    source = model()
    tensor = source.tensors["a.weight"]
    weights = Weights(source, SHAPES)
    part = weights.rows("a.weight", 16, 4)
    assert (part.rows, part.cols, part.groups) == (4, 32, 1)
    second = to_lanes(tensor.dtype, tensor.stored, *tensor.shape)[-part.cols // 32 * (32 + 256) :]
    assert ctypes.string_at(weights.base + part.offset, second.size) == second.tobytes()


def test_what_a_checkpoint_stores_otherwise_is_as_gguf_has_it() -> None:
    values = np.arange(6, dtype=np.float32)
    tensors = {
        "m.n": Tensor("m.n.weight", DTYPES["f32"], (6,), values.view(np.uint8)),
        "t.w": Tensor("t.w.weight", DTYPES["f32"], (2, 3), values.view(np.uint8)),
    }
    source = Model("m", "x", "safetensors", {}, {tensor.name: tensor for tensor in tensors.values()})
    names = HuggingFace("m.", {"norm": "m.n", "w": "t.w"}, frozenset({"w"}), frozenset({"norm"}))
    weights = Weights(source, {"norm.weight": (6,), "w.weight": (3, 2)}, source=names)
    assert weights.vector("norm.weight").tolist() == [1, 2, 3, 4, 5, 6]
    assert (weights.matrix("w.weight").rows, weights.matrix("w.weight").cols) == (3, 2)
    assert weights.sources == {"m.n.weight", "t.w.weight"}


def test_vectors_become_float32() -> None:
    weights = Weights(model(), SHAPES, {"plain.weight": (3,)})
    for name, expected in (("norm.weight", list(range(8))), ("plain.weight", [1, 2, 3])):
        vector = weights.vector(name)
        assert vector.dtype == np.float32
        assert vector.tolist() == expected


def test_optional_tensors_may_be_missing_but_not_of_another_shape() -> None:
    assert "plain.weight" not in Weights(model(), SHAPES, {"missing.weight": (1,)})
    assert "plain.weight" in Weights(model(), SHAPES, {"plain.weight": (3,)})
    with pytest.raises(BadFileError, match=r"wrong shape.*plain\.weight.*got \(3,\).*expected \(4,\)"):
        Weights(model(), SHAPES, {"plain.weight": (4,)})


def test_a_missing_tensor_is_named_with_a_near_one() -> None:
    with pytest.raises(BadFileError, match=r"tensor missing.*nrm\.weight.*did you mean 'norm\.weight'"):
        Weights(model(), {"nrm.weight": (8,)})


def test_a_tensor_of_another_shape_is_named() -> None:
    with pytest.raises(BadFileError, match=r"wrong shape.*a\.weight.*got \(20, 32\).*expected \(32, 20\)"):
        Weights(model(), {"a.weight": (32, 20)})


def test_lent_tensors_are_used_instead_of_the_model_s_own() -> None:
    lender = Weights(model(), {"a.weight": (20, 32), "norm.weight": (8,)})
    source = model()
    del source.tensors["a.weight"], source.tensors["norm.weight"]
    weights = Weights(source, SHAPES, lender=lender)
    assert weights.base + weights.matrix("a.weight").offset == lender.base + lender.matrix("a.weight").offset
    assert weights.matrix("b.weight").offset >= 0
    assert weights.vector("norm.weight").tolist() == list(range(8))
    with pytest.raises(BadFileError, match=r"wrong shape.*a\.weight"):
        Weights(source, {"a.weight": (32, 20)}, lender=lender)
