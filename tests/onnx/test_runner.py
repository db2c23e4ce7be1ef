import numpy as np
import pytest
from onnx import helper

from modelc.errors import UnsupportedError
from tests.onnx.graphs import assert_same, computed, graph_model, machine, node, session, value

f32 = np.float32


def test_shapes_may_change_from_call_to_call_and_come_back() -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("ReduceMean", ["x"], ["m"], axes=[-1]),
        node("Sub", ["x", "m"], ["d"]),
        node("Reshape", ["d", "s"], ["r"]),
        node("MatMul", ["r", "w"], ["y"]),
    ]
    w = np.random.default_rng(0).standard_normal((6, 4)).astype(f32)
    prepared = session(graph_model(nodes, [value("x", shape=[None, 6])], ["y"], {"w": w}))
    for _ in range(4):
        for rows in (1, 5, 3):
            x = np.random.default_rng(rows).standard_normal((rows, 6)).astype(f32)
            right = (x - x.mean(-1, keepdims=True)) @ w
            assert np.allclose(prepared.run_values({"x": x})[0], right, atol=1e-5)


def test_a_recording_uses_the_new_values_of_inputs() -> None:
    proto = graph_model([node("Exp", ["x"], ["a"]), node("Add", ["a", "x"], ["y"])], [value("x", shape=[3])], ["y"])
    prepared = session(proto)
    for i in range(5):
        x = np.array([i, 0.5, -i], f32)
        assert np.allclose(prepared.run_values({"x": x})[0], np.exp(x) + x, rtol=1e-6)


def test_outputs_are_the_callers_own() -> None:
    proto = graph_model(
        [node("Identity", ["x"], ["y"]), node("Neg", ["x"], ["z"])], [value("x", shape=[2])], ["y", "z"]
    )
    prepared, x = session(proto), np.array([1, 2], f32)
    kept = [prepared.run_values({"x": x}) for _ in range(4)]
    for arrays in kept:
        np.add(arrays[0], 1, out=arrays[0])
        np.add(arrays[1], 1, out=arrays[1])
    for y, z in kept:
        assert y.tolist() == [2, 3] and z.tolist() == [0, -1]
    assert x.tolist() == [1, 2]


def test_a_result_whose_shape_depends_on_values_is_right_also_after_it_was_recorded() -> None:
    nodes = [node("NonZero", ["x"], ["i"]), node("Cast", ["i"], ["f"], to=1), node("ReduceSum", ["f"], ["y"])]
    prepared = session(graph_model(nodes, [value("x", shape=[4])], ["y", "i"]))
    for x in ([0, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0], [0, 1, 0, 1]) * 2:
        y, i = prepared.run_values({"x": np.array(x, f32)})
        assert i.tolist() == [np.nonzero(x)[0].tolist()] and y == sum(np.nonzero(x)[0])


def test_a_shape_that_is_an_input_is_used_each_time() -> None:
    proto = graph_model(
        [node("Reshape", ["x", "s"], ["r"]), node("Neg", ["r"], ["y"])],
        [value("x", shape=[6]), value("s", shape=[2], dtype=np.int64)],
        ["y"],
    )
    prepared, x = session(proto), np.arange(6, dtype=f32)
    for sizes in ([2, 3], [3, 2], [2, 3], [-1, 1], [2, 3]):
        assert_same(prepared.run_values({"x": x, "s": np.array(sizes)})[0], -x.reshape(sizes))


def branch(*nodes, output: str):
    return helper.make_graph(list(nodes), "branch", [], [helper.make_empty_tensor_value_info(output)])


def test_the_branch_is_chosen_by_the_condition_of_each_call() -> None:
    choice = node(
        "If",
        ["c"],
        ["y"],
        then_branch=branch(node("Add", ["x", "x"], ["t"]), output="t"),
        else_branch=branch(node("Slice", ["x", "zero", "one"], ["e"]), output="e"),
    )
    proto = graph_model(
        [choice],
        [value("c", shape=[], dtype=np.bool_), value("x", shape=[3])],
        ["y"],
        {"zero": np.array([0]), "one": np.array([1])},
    )
    prepared, x = session(proto), np.array([1, 2, 3], f32)
    for condition in (True, True, True, False, False, True, False):
        y = prepared.run_values({"c": np.array(condition), "x": x})[0]
        assert y.tolist() == ([2, 4, 6] if condition else [1])


def test_a_branch_that_shapes_decide_is_part_of_the_recording() -> None:
    nodes = [
        node("Size", ["x"], ["n"]),
        node("Greater", ["n", "two"], ["c"]),
        node(
            "If",
            ["c"],
            ["y"],
            then_branch=branch(node("Exp", ["x"], ["t"]), output="t"),
            else_branch=branch(node("Neg", ["x"], ["e"]), output="e"),
        ),
        node("Add", ["y", "x"], ["z"]),
    ]
    prepared = session(graph_model(nodes, [value("x", shape=[None])], ["z"], {"two": np.array(2)}))
    for _ in range(3):
        for n in (2, 3):
            x = np.arange(n, dtype=f32)
            assert np.allclose(prepared.run_values({"x": x})[0], (np.exp(x) if n > 2 else -x) + x)


def test_a_loop_carries_values_that_change_places() -> None:
    body = helper.make_graph(
        [node("Identity", ["go"], ["again"]), node("Add", ["a", "b"], ["sum"])],
        "body",
        [
            value("i", shape=[], dtype=np.int64),
            value("go", shape=[], dtype=np.bool_),
            value("a", shape=[1]),
            value("b", shape=[1]),
        ],
        [helper.make_empty_tensor_value_info(name) for name in ("again", "b", "sum", "a")],
    )
    proto = graph_model(
        [node("Loop", ["n", "", "x", "y"], ["p", "q", "all"], body=body)],
        [value("n", shape=[], dtype=np.int64), value("x", shape=[1]), value("y", shape=[1])],
        ["p", "q", "all"],
    )
    p, q, seen = computed(proto, {"n": np.array(7), "x": np.array([0], f32), "y": np.array([1], f32)})
    assert (p.item(), q.item(), seen.reshape(-1).tolist()) == (13, 21, [0, 1, 1, 2, 3, 5, 8])


def test_values_of_a_loop_may_grow() -> None:
    body = helper.make_graph(
        [node("Identity", ["go"], ["again"]), node("Concat", ["a", "a"], ["b"], axis=0)],
        "body",
        [value("i", shape=[], dtype=np.int64), value("go", shape=[], dtype=np.bool_), value("a", shape=[None])],
        [helper.make_empty_tensor_value_info(name) for name in ("again", "b")],
    )
    proto = graph_model(
        [node("Loop", ["n", "", "x"], ["y"], body=body)],
        [value("n", shape=[], dtype=np.int64), value("x", shape=[None])],
        ["y"],
    )
    (y,) = computed(proto, {"n": np.array(5), "x": np.array([1, 2], f32)})
    assert y.tolist() == [1, 2] * 32


def everything() -> tuple:
    """A graph with every kind of instruction, and inputs large enough for a team."""
    rng = np.random.default_rng(1)
    weights = {
        "k": rng.standard_normal((8, 3, 3, 3)).astype(f32),
        "w": rng.standard_normal((900, 64)).astype(f32),
        "b": rng.standard_normal(64).astype(f32),
        "lw": rng.standard_normal((2, 64, 64)).astype(f32) / 8,
        "lr": rng.standard_normal((2, 64, 16)).astype(f32) / 8,
        "shape": np.array([2, 8, 900]),
    }
    nodes = [
        node("Conv", ["x", "k"], ["c"], pads=[1, 1, 1, 1]),
        node("Relu", ["c"], ["r"]),
        node("Reshape", ["r", "shape"], ["f"]),
        node("MatMul", ["f", "w"], ["m"]),
        node("Add", ["m", "b"], ["l"]),
        node("LayerNormalization", ["l", "b"], ["n"]),
        node("Transpose", ["n"], ["t"], perm=[0, 2, 1]),
        node("MatMul", ["n", "t"], ["s"]),
        node("Softmax", ["s"], ["p"]),
        node("MatMul", ["p", "n"], ["a"]),
        node("Tanh", ["a"], ["h"]),
        node("LSTM", ["h", "lw", "lr"], ["o", "hn"], hidden_size=16, direction="bidirectional"),
        node("ReduceMean", ["o"], ["y"], axes=[0]),
        node("Concat", ["y", "y"], ["z"], axis=-1),
    ]
    return graph_model(nodes, [value("x", shape=[2, 3, 30, 30])], ["z", "hn", "p"], weights), {
        "x": rng.standard_normal((2, 3, 30, 30)).astype(f32)
    }


def test_the_number_of_threads_changes_no_bit() -> None:
    proto, feeds = everything()
    alone = computed(proto, feeds)
    for n_threads in (2, 3):
        for a, b in zip(computed(proto, feeds, n_threads), alone, strict=True):
            assert_same(a, b)
    machine(3).close()


def test_rows_of_a_batch_have_the_bits_they_have_alone() -> None:
    proto, feeds = everything()
    proto.graph.initializer[-1].raw_data = np.array([-1, 8, 900]).tobytes()
    both = computed(proto, feeds)[2]
    for i in range(2):
        assert_same(computed(proto, {"x": feeds["x"][i : i + 1]})[2][0], both[i])


@pytest.mark.parametrize(
    ("op", "domain", "opset", "message"),
    [
        ("Gemn", "", 17, r"node 'y' \(Gemn\): the operator 'Gemn' is not supported; did you mean 'Gemm'\?"),
        ("Foo", "who.knows", 17, r"node 'y' \(who.knows.Foo\): unknown domain: got 'who.knows'"),
        ("Neg", "", 5, "opset 5 is too old: expected 7 or newer"),
    ],
)
def test_operators_that_modelc_lacks_are_named(op: str, domain: str, opset: int, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        session(graph_model([node(op, ["x"], ["y"], domain=domain)], [value("x", shape=[1])], ["y"], opset=opset))
