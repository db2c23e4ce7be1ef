import copy
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from modelc.errors import BadFileError, UnsupportedError
from modelc.formats.onnx_plan import Graph, read_plan
from tests.onnx.graphs import graph_model, node, opened, plan_of, value

f32 = np.float32


def chain(*nodes: onnx.NodeProto, outputs: tuple[str, ...] = ("y",)) -> onnx.ModelProto:
    return graph_model(nodes, [value("x", shape=[None])], outputs)


def test_a_plan_has_the_nodes_with_their_attributes() -> None:
    proto = chain(node("LeakyRelu", ["x"], ["y"], name="leak", alpha=0.5))
    graph = read_plan(plan_of(proto)).graph
    (only,) = graph.nodes
    assert (only.op, only.name, only.inputs, only.outputs, only.attributes) == (
        "LeakyRelu",
        "leak",
        ("x",),
        ("y",),
        {"alpha": 0.5},
    )
    assert [(each.name, each.type, each.shape) for each in graph.inputs] == [("x", "f32", (None,))]


def test_nodes_are_put_into_an_order_in_which_they_can_run() -> None:
    proto = chain(node("Neg", ["b"], ["y"]), node("Abs", ["a"], ["b"]), node("Exp", ["x"], ["a"]))
    assert [each.op for each in read_plan(plan_of(proto)).graph.nodes] == ["Exp", "Abs", "Neg"]


def test_graphs_in_nodes_know_what_they_use_of_the_outer_one() -> None:
    inner = helper.make_graph([node("Neg", ["a"], ["z"])], "inner", [], [helper.make_empty_tensor_value_info("z")])
    proto = chain(node("Exp", ["x"], ["a"]), node("If", ["c"], ["y"], then_branch=inner, else_branch=inner))
    proto.graph.input.append(value("c", shape=[], dtype=np.bool_))
    branch = read_plan(plan_of(proto)).graph.nodes[-1]
    assert branch.outer == ("a",)
    assert isinstance(branch.attributes["then_branch"], Graph)


def test_large_constants_become_tensors_of_the_model_and_small_ones_stay_in_the_plan() -> None:
    large, small = np.arange(1000, dtype=f32), np.array([1, 2], np.int64)
    nodes = [
        node("Constant", [], ["a"], name="c", value=onnx.numpy_helper.from_array(large)),
        node("Constant", [], ["b"], name="c", value=onnx.numpy_helper.from_array(small)),
        node("Add", ["x", "a"], ["y"]),
    ]
    model = opened(chain(*nodes, outputs=("y", "b")))
    assert [tensor.shape for tensor in model.tensors.values()] == [(1000,)]


def test_functions_of_the_model_are_written_out() -> None:
    function = helper.make_function(
        "own", "Twice", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 17)]
    )
    proto = chain(node("Twice", ["x"], ["y"], domain="own"))
    proto.opset_import.append(helper.make_opsetid("own", 1))
    proto.functions.append(function)
    assert [each.op for each in read_plan(plan_of(proto)).graph.nodes] == ["Add"]


def own_function(name: str, *calls: str) -> onnx.FunctionProto:
    """Calls others one after another."""
    values = ["a", *(f"t{i}" for i in range(len(calls) - 1)), "b"]
    nodes = [
        node(call, [values[i]], [values[i + 1]], domain="" if call == "Neg" else "own") for i, call in enumerate(calls)
    ]
    return helper.make_function("own", name, ["a"], ["b"], nodes, [helper.make_opsetid("", 17)])


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ([own_function("F0", "F0")], "cannot be written out"),
        (
            [*(own_function(f"F{i}", f"F{i + 1}", f"F{i + 1}") for i in range(40)), own_function("F40", "Neg")],
            "the model's functions are too large: .*got 1099511627776",
        ),
    ],
)
def test_functions_without_end_are_refused(functions: list[onnx.FunctionProto], message: str) -> None:
    proto = chain(node("F0", ["x"], ["y"], domain="own"))
    proto.opset_import.append(helper.make_opsetid("own", 1))
    proto.functions.extend(functions)
    with pytest.raises(BadFileError, match=message):
        opened(proto)


CONTRADICTIONS = {
    "a cycle": (
        chain(node("Add", ["x", "b"], ["y"], name="first"), node("Neg", ["y"], ["b"], name="second")),
        r"node '(first|second)' \(\w+\) is part of a cycle",
    ),
    "a value that nobody makes": (
        chain(node("Neg", ["nowhere"], ["y"], name="n")),
        r"node 'n' \(Neg\) reads a value that nothing makes: .*'nowhere'",
    ),
    "two makers": (
        chain(node("Neg", ["x"], ["y"], name="a"), node("Abs", ["x"], ["y"], name="b")),
        r"node 'b' \(Abs\) makes a value that exists already: .*'y'",
    ),
    "an output that nobody makes": (chain(outputs=("z",)), "no node makes an output of the graph: .*'z'"),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_a_graph_that_contradicts_itself_is_refused_with_the_node(case: str) -> None:
    proto, message = CONTRADICTIONS[case]
    with pytest.raises(BadFileError, match=message) as caught:
        opened(proto)
    assert caught.value.path is not None and "\n" not in str(caught.value)


def test_graphs_that_are_nested_too_deeply_are_refused() -> None:
    leaf = graph = helper.make_graph([node("Neg", ["x"], ["z"])], "g", [], [helper.make_empty_tensor_value_info("z")])
    for level in range(20):
        outputs = [helper.make_empty_tensor_value_info(f"z{level}")]
        branch = node("If", ["c"], [f"z{level}"], then_branch=graph, else_branch=leaf)
        graph = helper.make_graph([branch], "g", [], outputs)
    proto = graph_model(graph.node, [value("x", shape=[1]), value("c", shape=[], dtype=np.bool_)], ["z19"])
    with pytest.raises(BadFileError, match="nested too deeply"):
        opened(proto)


def changed(plan: Any, *path: Any, to: Any) -> Any:
    plan = copy.deepcopy(plan)
    place = plan
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return plan


@pytest.mark.parametrize(
    ("path", "to"),
    [
        (("graphs",), {}),
        (("graphs", 0, "nodes", 0, "attributes", "other"), {"graph": 0}),
        (("graphs",), []),
        (("graphs", 0, "nodes"), [1]),
        (("graphs", 0, "nodes", 0, "op"), None),
        (("graphs", 0, "nodes", 0, "inputs"), "x"),
        (("graphs", 0, "nodes", 0, "inputs"), [1]),
        (("graphs", 0, "nodes", 0, "attributes", "alpha"), {"float": []}),
        (("graphs", 0, "nodes", 0, "attributes", "alpha"), {"what": 1}),
        (("graphs", 0, "nodes", 0, "attributes", "alpha"), {"graph": 0}),
        (("graphs", 0, "nodes", 0, "attributes", "alpha"), {"graph": 9}),
        (("graphs", 0, "inputs", 0, "shape"), [1.5]),
        (("graphs", 0, "inputs", 0, "type"), "f31"),
        (("graphs", 0, "initializers"), {"a": {"type": "f32", "shape": ["1"], "data": ""}}),
        (("opset",), {"": "17"}),
        (("version",), None),
    ],
)
def test_a_damaged_plan_is_one_clear_error(path: tuple[Any, ...], to: Any) -> None:
    plan = plan_of(chain(node("LeakyRelu", ["x"], ["y"], alpha=0.5)))
    with pytest.raises(BadFileError, match="the execution plan is damaged"):
        read_plan(changed(plan, *path, to=to))


def test_a_plan_of_another_version_says_so() -> None:
    plan = plan_of(chain(node("Neg", ["x"], ["y"])))
    with pytest.raises(UnsupportedError, match="unknown version of the plan: got 99, expected 1; pack the model again"):
        read_plan(changed(plan, "version", to=99))
