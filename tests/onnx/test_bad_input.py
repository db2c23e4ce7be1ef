"""Graphs that cannot be computed: one clear line that names the node, and no memory asked for."""

import re
import tracemalloc
from typing import Any

import numpy as np
import onnx
import pytest

from modelc.errors import ModelcError
from tests.onnx.graphs import graph_model, node, opened, session, value

f32 = np.float32
X = np.ones((2, 3), f32)
TERABYTES = np.array([1 << 40])


def failing(op: str, *arrays: Any, opset: int = 17, **attributes: Any) -> ModelcError:
    """The error of one node named `bad`."""
    names = ["" if array is None else f"x{i}" for i, array in enumerate(arrays)]
    given = {name: np.asarray(array) for name, array in zip(names, arrays, strict=True) if name}
    infos = [value(name, array) for name, array in given.items()]
    proto = graph_model([node(op, names, ["y"], name="bad", **attributes)], infos, ["y"], opset=opset)
    with pytest.raises(ModelcError) as caught:
        session(proto).run_values(given)
    return caught.value


CASES: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "a product of other sizes": (("MatMul", X, X), {}, r"the matrices do not fit: got float32 \[2, 3\] and"),
    "types that clash": (("Add", X, np.ones((2, 3), np.int64)), {}, "different types: got float32 and int64"),
    "shapes that cannot be broadcast": (("Add", X, np.ones((2, 4), f32)), {}, "cannot be computed"),
    "a Reshape to 2^40": (("Reshape", X, TERABYTES), {}, r"does not fit: got \[1099511627776\], expected 6 elements"),
    "a Reshape with two -1": (("Reshape", X, np.array([-1, -1])), {}, "the shape does not fit"),
    "a ConstantOfShape of terabytes": (
        ("ConstantOfShape", TERABYTES),
        {},
        "the result is too large: got 4398046511104",
    ),
    "an Expand to terabytes": (("Expand", X[:1, :1], np.array([1 << 22, 1 << 22])), {}, "the result is too large"),
    "a Tile to terabytes": (("Tile", X, np.array([1 << 20, 1 << 20])), {}, "the result is too large"),
    "a Pad to terabytes": (("Pad", X, np.array([0, 0, 1 << 40, 0])), {}, "the result is too large"),
    "a Range of terabytes": (("Range", np.array(0), np.array(1 << 42), np.array(1)), {}, "the result is too large"),
    "a Resize to terabytes": (
        ("Resize", X[None, None], None, None, np.array([1, 1, 1 << 21, 1 << 21])),
        {},
        "the result is too large",
    ),
    "a OneHot of terabytes": (
        ("OneHot", np.zeros(1 << 10, np.int64), np.array(1 << 40), np.array([0, 1], f32)),
        {},
        "the result is too large",
    ),
    "an outer product of terabytes": (
        ("Mul", np.ones((1 << 20, 1), f32), np.ones((1, 1 << 20), f32)),
        {},
        "the result is too large",
    ),
    "a window of terabytes": (("HannWindow", np.array(1 << 42)), {}, "the result is too large"),
    "too many dimensions": (("Expand", X, np.ones(200, np.int64)), {}, "a wrong shape"),
    "an index out of range": (("Gather", X, np.array([2])), {}, "an index is out of range: got 2, expected -2 to 1"),
    "an axis out of range": (("Softmax", X), {"axis": 5}, "no such axis: got 5, expected -2 to 1"),
    "an attribute of the wrong type": (
        ("Softmax", X),
        {"axis": 0.5},
        "the attribute 'axis' has a wrong type: got float",
    ),
    "a missing attribute": (("Concat", X, X), {}, "the attribute 'axis' is missing"),
    "a permutation with a hole": (("Transpose", X), {"perm": [0, 2]}, "the permutation does not fit"),
    "sizes that do not add up": (("Split", X, np.array([1, 5])), {"axis": 1}, r"the sizes do not fit: got \[1, 5\]"),
    "a kernel larger than the image": (
        ("Conv", X[None], np.ones((4, 2, 9), f32)),
        {},
        "the kernel is larger than its input",
    ),
    "a weight of other channels": (("Conv", X[None], np.ones((4, 3, 1), f32)), {}, "the weight does not fit"),
    "strides of zero": (("MaxPool", X[None]), {"kernel_shape": [1], "strides": [0]}, "out of range"),
    "a group of zero": (("Conv", X[None], np.ones((4, 2, 1), f32)), {"group": 0}, "the weight does not fit"),
    "recurrent weights of other sizes": (
        ("LSTM", X[None], np.ones((1, 8, 3), f32), np.ones((1, 8, 3), f32)),
        {"hidden_size": 2},
        r"R does not fit: got \[1, 8, 3\], expected \[1, 8, 2\]",
    ),
    "too few inputs": (("Add", X), {}, "cannot be computed"),
    "a mode that does not exist": (("Pad", X, np.zeros(4, np.int64)), {"mode": "mirror"}, "'mode' is not supported"),
    "an element type that does not exist": (("Cast", X), {"to": 99}, "no such element type: got 99"),
    "a shape of floats": (("Reshape", X, np.array([6.0])), {}, "the shape must be integers"),
    "a step of zero": (("Slice", X, *(np.array([0]),) * 3, np.array([0])), {}, "do not fit together"),
    "an equation for other inputs": (("Einsum", X), {"equation": "ij,jk->ik"}, "the equation does not fit"),
    "a k that is too large": (("TopK", X, np.array([9])), {}, "a wrong k: got 9, expected 0 to 3"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_node_that_cannot_be_computed_is_named_in_one_line(case: str) -> None:
    arguments, attributes, message = CASES[case]
    tracemalloc.start()
    error = failing(*arguments, **attributes)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert re.search(message, str(error)), str(error)
    assert str(error).startswith("node 'bad' (") and "\n" not in str(error)
    assert peak < 64 << 20


def test_a_loop_that_collects_too_much_ends() -> None:
    body = onnx.helper.make_graph(
        [node("Identity", ["go"], ["again"]), node("Concat", ["a", "a"], ["b"], axis=0, name="grow")],
        "body",
        [value("i", shape=[], dtype=np.int64), value("go", shape=[], dtype=np.bool_), value("a", shape=[None])],
        [onnx.helper.make_empty_tensor_value_info(name) for name in ("again", "b")],
    )
    proto = graph_model([node("Loop", ["", "", "x"], ["y"], body=body)], [value("x", shape=[None])], ["y"])
    prepared = session(proto)
    with (
        prepared._runner.machine.limited(1 << 20),
        pytest.raises(ModelcError, match=r"node 'grow' \(Concat\): the result is too large"),
    ):
        prepared.run_values({"x": np.ones(8, f32)})


def test_values_that_together_need_too_much_are_refused() -> None:
    nodes = [node("Exp", ["x"], [f"a{i}"]) for i in range(20)] + [node("Sum", [f"a{i}" for i in range(20)], ["y"])]
    prepared = session(graph_model(nodes, [value("x", shape=[None])], ["y"]))
    with (
        prepared._runner.machine.limited(1 << 20),
        pytest.raises(ModelcError, match="the values of the graph need too much memory"),
    ):
        prepared.run_values({"x": np.ones(1 << 16, f32)})


def test_a_tensor_that_the_plan_names_must_be_there() -> None:
    model = opened(
        graph_model([node("Add", ["x", "w"], ["y"])], [value("x", shape=[1])], ["y"], {"w": np.ones(1, f32)})
    )
    model.tensors.clear()
    from modelc.onnx.session import Session
    from tests.onnx.graphs import machine

    with pytest.raises(ModelcError, match="the plan names a tensor that the model does not have: tensor 'w'"):
        Session(model, machine())
