import numpy as np
import pytest

from tests.onnx.graphs import graph_model, node, session, value

f32 = np.float32
RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 8)).astype(f32)
CONSTANTS = {
    "w": RNG.standard_normal((8, 8)).astype(f32),
    "b": RNG.standard_normal(8).astype(f32),
    "root2": np.array(2**0.5, f32),
    "per_root2": np.array(0.5**0.5, f32),
    "one": np.array(1, f32),
    "half": np.array(0.5, f32),
    "two": np.array(2, f32),
    "zero": np.array(0, f32),
    "eps": np.array(1e-5, f32),
}


def operators(nodes: list, outputs: tuple[str, ...] = ("y",), opset: int = 17) -> list[str]:
    """What is left of the graph; its answer must be the one of the graph whose inner values are all outputs."""
    fused = session(graph_model(nodes, [value("x", X)], outputs, CONSTANTS, opset))
    inner = [name for each in nodes for name in each.output if name not in outputs]
    plain = session(graph_model(nodes, [value("x", X)], [*outputs, *inner], CONSTANTS, opset))
    for a, b in zip(fused.run_values({"x": X}), plain.run_values({"x": X}), strict=False):
        assert np.allclose(a, b, atol=2e-6)
    return [each.op for each in fused._runner.graph.nodes]


def test_a_product_and_its_bias_are_one() -> None:
    nodes = [node("MatMul", ["x", "w"], ["m"]), node("Add", ["b", "m"], ["y"])]
    assert operators(nodes) == ["Linear"]


def test_a_product_that_is_used_twice_stays() -> None:
    nodes = [node("MatMul", ["x", "w"], ["m"]), node("Add", ["m", "b"], ["a"]), node("Mul", ["a", "m"], ["y"])]
    assert operators(nodes) == ["MatMul", "Add", "Mul"]


GELUS = {
    "x (1 + erf) / 2": [("Mul", "x", "sum", "t"), ("Mul", "t", "half", "y")],
    "x/2 (1 + erf)": [("Mul", "x", "half", "t"), ("Mul", "t", "sum", "y")],
    "x ((1 + erf) / 2)": [("Mul", "half", "sum", "t"), ("Mul", "x", "t", "y")],
}


@pytest.mark.parametrize("form", GELUS)
@pytest.mark.parametrize("scaling", [("Div", "root2"), ("Mul", "per_root2")])
def test_gelu_is_found_in_every_form_that_exporters_write(form: str, scaling: tuple[str, str]) -> None:
    nodes = [node(scaling[0], ["x", scaling[1]], ["d"]), node("Erf", ["d"], ["e"]), node("Add", ["e", "one"], ["sum"])]
    nodes += [node(op, [a, b], [out]) for op, a, b, out in GELUS[form]]
    assert operators(nodes) == ["Gelu"]


def test_what_only_looks_like_gelu_stays() -> None:
    nodes = [node("Div", ["x", "two"], ["d"]), node("Erf", ["d"], ["e"]), node("Add", ["e", "one"], ["s"])]
    nodes += [node("Mul", ["x", "s"], ["t"]), node("Mul", ["t", "half"], ["y"])]
    assert operators(nodes) == ["Div", "Erf", "Add", "Mul", "Mul"]


@pytest.mark.parametrize("opset", [17, 18])
def test_a_layer_norm_is_found(opset: int) -> None:
    mean = {"axes": [-1]} if opset < 18 else {}
    axes = [] if opset < 18 else ["last"]
    nodes = [node("Constant", [], ["last"], value_ints=[-1])] if opset >= 18 else []
    nodes += [
        node("ReduceMean", ["x", *axes], ["m"], **mean),
        node("Sub", ["x", "m"], ["d"]),
        node("Pow", ["d", "two"], ["s"]),
        node("ReduceMean", ["s", *axes], ["v"], **mean),
        node("Add", ["v", "eps"], ["e"]),
        node("Sqrt", ["e"], ["r"]),
        node("Div", ["d", "r"], ["n"]),
        node("Mul", ["n", "b"], ["t"]),
        node("Add", ["t", "b"], ["y"]),
    ]
    assert operators(nodes, opset=opset) == ["LayerNormalization"]


def test_a_softmax_without_nan_is_found() -> None:
    nodes = [node("Softmax", ["x"], ["s"]), node("IsNaN", ["s"], ["n"]), node("Where", ["n", "zero", "s"], ["y"])]
    assert operators(nodes) == ["SoftmaxMasked"]


def test_constants_are_folded_and_what_nobody_needs_is_dropped() -> None:
    nodes = [
        node("Shape", ["w"], ["s"]),
        node("Cast", ["s"], ["f"], to=1),
        node("ReduceProd", ["f"], ["p"], keepdims=0),
        node("Exp", ["x"], ["unused"]),
        node("Mul", ["x", "p"], ["y"]),
    ]
    found = session(graph_model(nodes, [value("x", X)], ["y"], CONSTANTS))
    assert [each.op for each in found._runner.graph.nodes] == ["Mul"]
    assert np.array_equal(found.run_values({"x": X})[0], X * 64)
