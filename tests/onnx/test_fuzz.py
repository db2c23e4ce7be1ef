"""Random graphs, attributes and inputs: an answer or one clear error, the same node by node and recorded."""

import warnings
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modelc.errors import ModelcError
from modelc.onnx.registry import DOMAINS, FUSED
from tests.onnx.graphs import assert_same, graph_model, node, session, value

NAMES = sorted(
    (domain, name)
    for domain in DOMAINS.keys() - {FUSED}
    for table in DOMAINS[domain]
    for name in table.keys() - {"If", "Loop", "Scan", "SequenceMap"}
)
SIZES = st.integers(0, 4)
DTYPES = st.sampled_from([np.float32, np.float32, np.int64, np.int32, np.bool_, np.uint8, np.float16, np.float64])


@st.composite
def arrays(draw: Any) -> np.ndarray:
    shape = draw(st.lists(SIZES, max_size=4))
    seed = draw(st.integers(0, 9))
    values = np.random.default_rng(seed).integers(-3, 5, shape)
    return np.asarray(values).astype(draw(DTYPES))


WORDS = """axis axes perm kernel_shape strides pads dilations group keepdims to mode alpha size k hidden_size num_heads
q_num_heads kv_num_heads blocksize equation direction epsilon p largest transA auto_pad"""
ATTRIBUTES = st.dictionaries(
    st.sampled_from(WORDS.split()),
    st.one_of(
        st.integers(-3, 9),
        st.floats(-2, 2, width=32),
        st.lists(st.integers(-2, 3), min_size=1, max_size=4),
        st.sampled_from(["linear", "SAME_UPPER", "ij,jk->ik", "LEFT", "forward"]),
    ),
    max_size=4,
)


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    st.sampled_from(NAMES),
    st.lists(st.one_of(st.none(), arrays()), max_size=5),
    ATTRIBUTES,
    st.sampled_from([9, 13, 17, 23]),
)
def test_a_random_node_gives_an_answer_or_one_clear_line(
    operator: tuple[str, str], inputs: list[np.ndarray | None], attributes: dict[str, Any], opset: int
) -> None:
    domain, op = operator
    names = ["" if array is None else f"x{i}" for i, array in enumerate(inputs)]
    feeds = {name: array for name, array in zip(names, inputs, strict=True) if array is not None}
    infos = [value(name, array) for name, array in feeds.items()]
    proto = graph_model([node(op, names, ["y"], domain=domain, **attributes)], infos, ["y"], opset=opset)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            prepared = session(proto)
            first, second, third = (prepared.run_values(feeds) for _ in range(3))
        except ModelcError as error:
            assert "\n" not in str(error)
            return
    if not any(name in op for name in ("Random", "Bernoulli", "Multinomial", "Dropout")):
        for a, b, c in zip(first, second, third, strict=True):
            if a is not None:
                assert_same(a, b)
                assert_same(a, c)


LINKS = ["Add", "Mul", "Sub", "MatMul", "Concat", "Relu", "Transpose", "Softmax", "ReduceMean", "Exp", "Neg", "Where"]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    st.lists(st.tuples(st.sampled_from(LINKS), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12),
    st.data(),
)
def test_a_random_graph_gives_the_same_recorded_as_node_by_node(links: list[tuple[str, int, int]], data: Any) -> None:
    made = ["x", "z"]
    nodes = []
    for i, (op, a, b) in enumerate(links):
        left, right = made[a % len(made)], made[b % len(made)]
        inputs = {"Where": ["c", left, right]}.get(
            op, [left, right] if op in ("Add", "Mul", "Sub", "MatMul", "Concat") else [left]
        )
        attributes = {"axis": 0} if op == "Concat" else {}
        nodes.append(node(op, inputs, [f"v{i}"], **attributes))
        made.append(f"v{i}")
    infos = [value("x", shape=[3, 3]), value("z", shape=[3, 3]), value("c", shape=[], dtype=np.bool_)]
    prepared = session(graph_model(nodes, infos, [made[-1], made[len(made) // 2]]))
    whole = session(graph_model(nodes, infos, made[2:]))
    rng = np.random.default_rng(0)
    for i in range(4):
        feeds = {name: rng.standard_normal((3, 3)).astype(np.float32) for name in "xz"} | {"c": np.array(i % 2 == 0)}
        try:
            some = prepared.run_values(feeds)
            by_name = whole.run({**feeds})
        except ModelcError as error:
            assert "\n" not in str(error)
            return
        assert_same(some[0], by_name[made[-1]])
