"""Small ONNX models for tests."""

from __future__ import annotations

import functools
import itertools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from modelc.formats import open_model
from modelc.formats.onnx_plan import KEY
from modelc.ir import Model
from modelc.onnx.machine import Machine
from modelc.onnx.session import Session

f32 = np.float32
_numbers = itertools.count()


def node(
    op: str, inputs: Sequence[str], outputs: Sequence[str], name: str = "", domain: str = "", **attributes: Any
) -> onnx.NodeProto:
    return helper.make_node(op, inputs, outputs, name=name, domain=domain, **attributes)


def value(name: str, array: Any = None, shape: Sequence[Any] | None = None, dtype: Any = f32) -> onnx.ValueInfoProto:
    """An input or output: of an array's type with unnamed sizes, or of a shape."""
    if array is not None:
        array = np.asarray(array)
        dtype, shape = array.dtype, [None] * array.ndim
    number = onnx.TensorProto.STRING if np.dtype(dtype) == object else helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, number, shape)


def graph_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[str],
    initializers: Mapping[str, Any] | None = None,
    opset: int = 17,
) -> onnx.ModelProto:
    infos = [helper.make_empty_tensor_value_info(name) for name in outputs]
    constants = [numpy_helper.from_array(np.asarray(array), name) for name, array in (initializers or {}).items()]
    graph = helper.make_graph(nodes, "g", inputs, infos, constants)
    imports = [
        helper.make_opsetid("", opset),
        helper.make_opsetid("com.microsoft", 1),
        helper.make_opsetid("ai.onnx.ml", 3),
    ]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def opened(proto: onnx.ModelProto, folder: Path | None = None) -> Model:
    """The model as the reader gives it."""
    with tempfile.TemporaryDirectory() as scratch:
        path = (folder or Path(scratch)) / f"graph{next(_numbers)}.onnx"
        path.write_bytes(proto.SerializeToString())
        return open_model(path)


@functools.cache
def machine(n_threads: int = 1) -> Machine:
    """One machine for all tests."""
    return Machine(n_threads)


def session(proto: onnx.ModelProto, n_threads: int = 1) -> Session:
    return Session(opened(proto), machine(n_threads))


def computed(proto: onnx.ModelProto, feeds: Mapping[str, Any], n_threads: int = 1) -> list[Any]:
    """The outputs; the same of a first run, of a run that is recorded and of one from the recording."""
    prepared = session(proto, n_threads)
    first, second, third = (prepared.run_values(feeds) for _ in range(3))
    for a, b, c in zip(first, second, third, strict=True):
        assert_same(a, b)
        assert_same(a, c)
    return first


def single(
    op: str, *arrays: Any, opset: int = 17, n_outputs: int = 1, constants: Sequence[int] = (), **attributes: Any
) -> Any:
    """The outputs of one node: one, or a list of several. None leaves an input out."""
    domain = attributes.pop("domain", "")
    names = ["" if array is None else f"x{i}" for i, array in enumerate(arrays)]
    given = {name: np.asarray(a) for name, a in zip(names, arrays, strict=True) if name}
    fixed = {f"x{i}" for i in constants}
    outputs = [f"y{i}" for i in range(n_outputs)]
    proto = graph_model(
        [node(op, names, outputs, domain=domain, **attributes)],
        [value(name, array) for name, array in given.items() if name not in fixed],
        outputs,
        {name: given[name] for name in fixed},
        opset,
    )
    found = computed(proto, {name: array for name, array in given.items() if name not in fixed})
    return found[0] if n_outputs == 1 else found


def assert_same(a: Any, b: Any) -> None:
    if isinstance(a, list):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
        return
    assert a.dtype == b.dtype and a.shape == b.shape
    if a.dtype.hasobject:
        assert a.tolist() == b.tolist()
    else:
        assert a.tobytes() == b.tobytes() or np.array_equal(a, b, equal_nan=True)


def plan_of(proto: onnx.ModelProto) -> Any:
    return opened(proto).metadata[KEY]
