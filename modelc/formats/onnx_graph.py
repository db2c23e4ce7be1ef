"""The graph of an ONNX model as an execution plan: JSON that can be run without the file and without `onnx`.

The plan is an object of `version`, `opset` (version by domain) and `graphs`; graph 0 is the model's, the others are
bodies of `If`, `Loop` and `Scan`, named by their number. A graph has `inputs`, `outputs`, `initializers` and `nodes`.
A value in it is `{"tensor": name}` for one that the model keeps, else `{"type", "shape", "data"}` with the bytes in
base64, or the `strings`. An attribute is an object of one key, which says its type.

Source: `onnx.proto` of ONNX 1.23 (IR version 13).
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from modelc.errors import BadFileError, UnsupportedError
from modelc.ir import JSON

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

VERSION = 1
MAX_NESTING = 16  # graphs in graphs
MAX_NODES = 1 << 20  # of a graph whose functions are written out
INLINE_BYTES = 1024  # of a constant in a graph; larger ones become tensors of the model

# Numbers of element types -> their names; all that ONNX has.
ELEMENT_TYPES = {
    1: "f32",
    2: "u8",
    3: "i8",
    4: "u16",
    5: "i16",
    6: "i32",
    7: "i64",
    8: "string",
    9: "bool",
    10: "f16",
    11: "f64",
    12: "u32",
    13: "u64",
    14: "c64",
    15: "c128",
    16: "bf16",
    17: "f8_e4m3",
    18: "f8_e4m3fnuz",
    19: "f8_e5m2",
    20: "f8_e5m2fnuz",
    21: "u4",
    22: "i4",
    23: "f4_e2m1",
    24: "f8_e8m0",
    25: "u2",
    26: "i2",
}

# Keeps a large tensor of a graph under a name like the one given, and returns it; None for a type that modelc lacks.
Keep: TypeAlias = "Callable[[str, TensorProto], str | None]"
Fields: TypeAlias = dict[str, JSON]


def plan_of(proto: ModelProto, path: Path, keep: Keep) -> Fields:
    """The execution plan of a model.

    Args:
        proto: The parsed file. Its functions are written out in place of the nodes that call them.
        path: The file, for messages.
        keep: Takes tensors that are no initializers of the main graph.

    Raises:
        BadFileError, UnsupportedError: Something in the graph cannot be part of a plan.
    """
    if len(proto.functions):
        proto = _without_functions(proto, path)
    writer = _Writer(path, keep)
    writer.graph(proto.graph, 0)
    opset: Fields = {text(entry.domain): entry.version for entry in proto.opset_import}
    return {"version": VERSION, "opset": opset, "graphs": writer.graphs}


def _without_functions(proto: ModelProto, path: Path) -> ModelProto:
    from onnx.inliner import inline_local_functions

    try:
        n_nodes = _written_out(proto)
        if n_nodes > MAX_NODES:
            expected = f"at most {MAX_NODES} nodes"
            raise BadFileError("the model's functions are too large", path=path, got=n_nodes, expected=expected)
        return inline_local_functions(proto)
    except BadFileError:
        raise
    except Exception as error:  # the library's own classes have no common base
        raise BadFileError("a function of the model cannot be written out", path=path, got=str(error)) from None


def _written_out(proto: ModelProto) -> int:
    """How many nodes the graph has when its functions are written out: a few short ones may make billions."""
    bodies = {(function.domain, function.name): function.node for function in proto.functions}
    sizes: dict[tuple[str, str], int] = {}

    def size_of(nodes: Iterable[NodeProto]) -> int:
        total = 0
        for node in nodes:
            key = (node.domain, node.op_type)
            if key in bodies and key not in sizes:
                sizes[key] = 0  # of one that calls itself, which the library refuses
                sizes[key] = size_of(bodies[key])
            total += sizes.get(key, 1)
            total += sum(size_of(attribute.g.node) for attribute in node.attribute)
        return total

    return size_of(proto.graph.node)


class _Writer:
    def __init__(self, path: Path, keep: Keep) -> None:
        self.graphs: list[JSON] = []
        self._path = path
        self._keep = keep

    def graph(self, graph: GraphProto, depth: int) -> int:
        """Adds a graph and those inside it; returns its number."""
        if depth > MAX_NESTING:
            raise BadFileError(
                "graphs are nested too deeply", path=self._path, expected=f"at most {MAX_NESTING} levels"
            )
        if len(graph.sparse_initializer):
            raise UnsupportedError("sparse initializers", path=self._path, hint="export the model with dense weights")
        number = len(self.graphs)
        fields: Fields = {}
        self.graphs.append(fields)
        fields["name"] = text(graph.name)
        fields["inputs"] = [self._declared(info) for info in graph.input]
        fields["outputs"] = [self._declared(info) for info in graph.output]
        if number == 0:
            fields["initializers"] = {name: {"tensor": name} for name in (text(t.name) for t in graph.initializer)}
        else:
            fields["initializers"] = {
                text(t.name): self._constant(t, f"graph {number}/{text(t.name)}") for t in graph.initializer
            }
        fields["nodes"] = [self._node(node, f"graph {number}", depth) for node in graph.node]
        return number

    def _declared(self, info: ValueInfoProto) -> Fields:
        kind = info.type.WhichOneof("value")
        if kind not in (None, "tensor_type"):
            return {"name": text(info.name), "type": str(kind).removesuffix("_type"), "shape": None}
        tensor = info.type.tensor_type
        shape: list[JSON] | None = None
        if tensor.HasField("shape"):
            shape = [
                dim.dim_value if dim.HasField("dim_value") else (text(dim.dim_param) or None)
                for dim in tensor.shape.dim
            ]
        return {"name": text(info.name), "type": ELEMENT_TYPES.get(tensor.elem_type), "shape": shape}

    def _node(self, node: NodeProto, place: str, depth: int) -> Fields:
        inputs = [text(name) for name in node.input]
        outputs = [text(name) for name in node.output]
        label = text(node.name) or next(filter(None, outputs), "")
        attributes: Fields = {}
        for attribute in node.attribute:
            attributes[text(attribute.name)] = self._attribute(attribute, f"{place}/{label}", depth)
        domain = text(node.domain)
        return {
            "op": text(node.op_type),
            "domain": "" if domain == "ai.onnx" else domain,
            "name": label,
            "inputs": list[JSON](inputs),
            "outputs": list[JSON](outputs),
            "attributes": attributes,
        }

    def _attribute(self, attribute: AttributeProto, place: str, depth: int) -> Fields:
        kind = attribute.type
        if attribute.ref_attr_name:
            raise BadFileError("an attribute refers to a function's, outside of one", path=self._path, got=place)
        simple: dict[int, Callable[[], Fields]] = {
            attribute.FLOAT: lambda: {"float": _float(attribute.f)},
            attribute.INT: lambda: {"int": attribute.i},
            attribute.STRING: lambda: {"string": text(attribute.s)},
            attribute.FLOATS: lambda: {"floats": [_float(value) for value in attribute.floats]},
            attribute.INTS: lambda: {"ints": list(attribute.ints)},
            attribute.STRINGS: lambda: {"strings": [text(value) for value in attribute.strings]},
            attribute.TENSOR: lambda: {"value": self._constant(attribute.t, f"{place}/{text(attribute.name)}")},
            attribute.GRAPH: lambda: {"graph": self.graph(attribute.g, depth + 1)},
            attribute.TYPE_PROTO: lambda: {"type": ELEMENT_TYPES.get(attribute.tp.tensor_type.elem_type)},
        }
        if kind not in simple:
            name = attribute.AttributeType.Name(kind) if kind in attribute.AttributeType.values() else kind
            raise UnsupportedError(f"attributes of type {name} are not supported", path=self._path, got=place)
        return simple[kind]()

    def _constant(self, tensor: TensorProto, name: str) -> Fields:
        shape = list(tensor.dims)
        title = ELEMENT_TYPES.get(tensor.data_type)
        if title is None or any(dim < 0 for dim in shape):
            got = f"type {tensor.data_type}, shape {shape}"
            raise BadFileError("a constant has no proper type and shape", path=self._path, tensor=name, got=got)
        if title == "string":
            strings = [text(value) for value in tensor.string_data]
            if len(strings) != math.prod(shape):
                raise BadFileError("a constant's strings do not fit its shape", path=self._path, tensor=name)
            return {"type": title, "shape": list[JSON](shape), "strings": list[JSON](strings)}
        if math.prod(shape) * 8 > INLINE_BYTES or tensor.data_location == tensor.EXTERNAL:
            kept = self._keep(name, tensor)
            if kept is not None:
                return {"tensor": kept}
        from onnx.numpy_helper import to_array

        try:
            array = to_array(tensor)
        except (ValueError, TypeError) as error:
            raise BadFileError("a constant is damaged", path=self._path, tensor=name, got=str(error)) from None
        data = base64.b64encode(array.tobytes()).decode("ascii")
        return {"type": title, "shape": list[JSON](shape), "data": data}


def text(value: str | bytes) -> str:
    """Protocol Buffers give strings that are no UTF-8 as bytes; here they are kept as surrogate escapes."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")


def _float(value: float) -> JSON:
    """Strict JSON has no NaN and no infinities: they become strings that `float` reads."""
    return value if math.isfinite(value) else str(value)
