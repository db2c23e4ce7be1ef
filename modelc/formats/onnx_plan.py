"""Execution plans of ONNX graphs, read from their JSON and checked: names, order, types of attributes.

The form is described in `onnx_graph`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from modelc.errors import BadFileError, UnsupportedError
from modelc.formats.onnx_graph import ELEMENT_TYPES, MAX_NESTING, VERSION
from modelc.ir import JSON

KEY = "onnx.execution_plan"  # of a model's metadata

_TYPES = {"tensor", "sparse_tensor", "sequence", "optional", "map", "opaque", *ELEMENT_TYPES.values()}


@dataclass(frozen=True, slots=True)
class Declared:
    """An input or output of a graph.

    Attributes:
        name: its name.
        type: element type (`f32`, `i64`, …), or `sequence`, `optional`; None when the file does not say.
        shape: sizes, names of sizes, None for unknown ones; None when the file does not say how many there are.
    """

    name: str
    type: str | None
    shape: tuple[int | str | None, ...] | None

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.type or 'any type'} of any shape"
        return f"{self.type} [{', '.join('?' if size is None else str(size) for size in self.shape)}]"


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is in the plan, or the name of a tensor of the model."""

    tensor: str | None
    type: str
    shape: tuple[int, ...]
    data: str
    strings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """One operation.

    Attributes:
        op: operator.
        domain: its domain, "" for ONNX's own.
        name: the node's name, or that of its first output.
        inputs, outputs: names of values; "" for one that is left out.
        attributes: by name: int, float, str, lists of them, `Constant`, or `Graph`.
        outer: values of outer graphs that graphs in its attributes use.
    """

    op: str
    domain: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    outer: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What the node is called in messages."""
        op = f"{self.domain}.{self.op}" if self.domain else self.op
        return f"node '{self.name}' ({op})"


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in an order in which they can be run."""

    name: str
    inputs: tuple[Declared, ...]
    outputs: tuple[Declared, ...]
    initializers: Mapping[str, Constant]
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole model; `opset` has the version of each domain."""

    opset: Mapping[str, int]
    graph: Graph


def read_plan(fields: JSON) -> Plan:
    """Checks a plan.

    Raises:
        BadFileError: It is damaged, or the graph contradicts itself: a cycle, a value that nobody makes, two of a name.
        UnsupportedError: It was made by another version of modelc.
    """
    if not isinstance(fields, dict) or type(fields.get("version")) is not int:
        raise BadFileError("the execution plan is damaged", expected="an object with a version")
    if fields["version"] != VERSION:
        hint = "pack the model again"
        raise UnsupportedError("unknown version of the plan", expected=VERSION, got=fields["version"], hint=hint)
    try:
        opset = {_of(str, domain): _of(int, version) for domain, version in _of(dict, fields["opset"]).items()}
        reader = _Reader(_of(list, fields["graphs"]))
        graph = reader.graph(0, frozenset(), 0)
    except (KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
        got = f"{type(error).__name__} {error}"
        raise BadFileError("the execution plan is damaged", got=got, hint="pack the model again") from None
    if "ai.onnx" in opset:
        opset[""] = opset.pop("ai.onnx")
    return Plan(opset, graph)


def _of(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")
    return value


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(_of(str, value) for value in _of(list, values))


class _Reader:
    def __init__(self, graphs: list[JSON]) -> None:
        self._graphs = graphs
        self._read: set[int] = set()

    def graph(self, number: int, outer: frozenset[str], depth: int) -> Graph:
        """Graph `number`, inside `depth` others; `outer`: the values that it may use beside its own."""
        if depth > MAX_NESTING:
            raise ValueError("graphs that are nested too deeply")
        if number in self._read:  # else a small plan could stand for a graph of any size
            raise ValueError("a graph that is used twice")
        self._read.add(number)
        fields = _of(dict, self._graphs[_of(int, number)])
        inputs = tuple(_declared(entry) for entry in _of(list, fields["inputs"]))
        outputs = tuple(_declared(entry) for entry in _of(list, fields["outputs"]))
        initializers = {_of(str, name): _constant(entry) for name, entry in _of(dict, fields["initializers"]).items()}
        nodes = [_of(dict, entry) for entry in _of(list, fields["nodes"])]
        made = _makers(nodes, [*(each.name for each in inputs), *initializers])
        known = outer | made.keys() | initializers.keys() | {each.name for each in inputs}
        read = [self._node(entry, known, depth) for entry in nodes]
        missing = [each.name for each in outputs if each.name not in known]
        if missing:
            raise BadFileError("no node makes an output of the graph", got=f"'{missing[0]}'")
        return Graph(_of(str, fields["name"]), inputs, outputs, initializers, _in_order(read, made))

    def _node(self, fields: dict[str, JSON], known: frozenset[str], depth: int) -> Node:
        attributes: dict[str, Any] = {}
        used: dict[str, None] = {}
        for name, entry in _of(dict, fields["attributes"]).items():
            ((kind, value),) = _of(dict, entry).items()
            if kind == "graph":
                attributes[name] = graph = self.graph(value, known, depth + 1)
                used.update(dict.fromkeys(_free_names(graph)))
            else:
                attributes[name] = _ATTRIBUTES[kind](value)
        inputs = _texts(fields["inputs"])
        node = Node(
            _of(str, fields["op"]),
            _of(str, fields["domain"]),
            _of(str, fields["name"]),
            inputs,
            _texts(fields["outputs"]),
            attributes,
            tuple(name for name in used if name in known),
        )
        wrong = next((name for name in inputs if name and name not in known), None)
        if wrong is not None:
            raise BadFileError(f"{node.title} reads a value that nothing makes", got=f"'{wrong}'")
        return node


def _makers(nodes: list[dict[str, JSON]], given: list[str]) -> dict[str, int]:
    """Which node makes each value."""
    made: dict[str, int] = {}
    names = set(given)
    for number, fields in enumerate(nodes):
        for name in _texts(fields["outputs"]):
            if name and (name in made or name in names):
                what = f"node '{fields['name']}' ({fields['op']}) makes a value that exists already"
                raise BadFileError(what, got=f"'{name}'")
            made[name] = number
    made.pop("", None)
    return made


def _in_order(nodes: list[Node], made: Mapping[str, int]) -> tuple[Node, ...]:
    """The nodes such that each comes after those that it reads from; as they are where that holds already."""
    order: list[Node] = []
    state = [0] * len(nodes)  # 1 while what it needs is looked at, 2 when it has its place
    for root in range(len(nodes)):
        stack = [root]
        while stack:
            number = stack[-1]
            if state[number] == 2:
                stack.pop()
                continue
            state[number] = 1
            node = nodes[number]
            needs = [made[name] for name in (*node.inputs, *node.outer) if name in made]
            waiting = [each for each in needs if state[each] != 2]
            if any(state[each] == 1 for each in waiting):
                raise BadFileError(f"{node.title} is part of a cycle", expected="a graph without cycles")
            if waiting:
                stack.append(waiting[0])
            else:
                state[number] = 2
                order.append(node)
                stack.pop()
    return tuple(order)


def _free_names(graph: Graph) -> Iterable[str]:
    own = {each.name for each in graph.inputs} | graph.initializers.keys()
    own.update(name for node in graph.nodes for name in node.outputs)
    for node in graph.nodes:
        yield from (name for name in (*node.inputs, *node.outer) if name and name not in own)
    yield from (each.name for each in graph.outputs if each.name not in own)


def _declared(entry: JSON) -> Declared:
    fields = _of(dict, entry)
    kind, shape = fields["type"], fields["shape"]
    if kind is not None and kind not in _TYPES:
        raise ValueError(f"the type {kind!r}")
    sizes = None if shape is None else tuple(_size(size) for size in _of(list, shape))
    return Declared(_of(str, fields["name"]), kind, sizes)


def _size(size: Any) -> int | str | None:
    if size is not None and type(size) not in (int, str):
        raise TypeError(f"a size of type {type(size).__name__}")
    return None if type(size) is int and size < 0 else size


def _constant(entry: JSON) -> Constant:
    fields = _of(dict, entry)
    if "tensor" in fields:
        return Constant(_of(str, fields["tensor"]), "", (), "", ())
    shape = tuple(_of(int, size) for size in _of(list, fields["shape"]))
    if fields["type"] == "string":
        return Constant(None, "string", shape, "", _texts(fields["strings"]))
    if fields["type"] not in _TYPES:
        raise ValueError(f"the type {fields['type']!r}")
    return Constant(None, _of(str, fields["type"]), shape, _of(str, fields["data"]), ())


def _number(value: Any) -> float:
    if type(value) not in (float, int, str):
        raise TypeError(f"a number of type {type(value).__name__}")
    return float(value)


_Read: TypeAlias = Callable[[Any], Any]
_ATTRIBUTES: dict[str, _Read] = {
    "float": _number,
    "int": lambda value: _of(int, value),
    "string": lambda value: _of(str, value),
    "floats": lambda value: [_number(each) for each in _of(list, value)],
    "ints": lambda value: [_of(int, each) for each in _of(list, value)],
    "strings": lambda value: list(_texts(value)),
    "value": _constant,
    "type": lambda value: None if value is None else _of(str, value),
}
