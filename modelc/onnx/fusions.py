"""Patterns of nodes that exporters write for one operation, replaced by that operation.

A pattern is found from its last node backwards; what lies in between must be used by nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np

from modelc.formats.onnx_plan import Node
from modelc.onnx.values import F32, Array


class _Nodes:
    """The nodes of a graph, by what they make."""

    def __init__(self, nodes: Iterable[Node], constants: Mapping[str, Array], outputs: set[str]) -> None:
        self.constants = constants
        self.nodes: dict[str, Node] = {}
        self._makers: dict[str, Node] = {}
        self._uses = Counter(outputs)
        for node in nodes:
            if _is_whole(node):
                self._makers.update({name: node for name in node.outputs if name})
            self._uses.update(name for name in (*node.inputs, *node.outer) if name)

    def maker(self, name: str, op: str) -> Node | None:
        """The node that makes `name`, if it is an `op` with one output that is used once."""
        node = self._makers.get(name)
        plain = node is not None and node.op == op and sum(map(bool, node.outputs)) == 1
        return node if plain and self._uses[name] == 1 else None

    def uses(self, name: str) -> int:
        """How often a value is used."""
        return self._uses[name]

    def made_by(self, name: str) -> Node | None:
        """The node that makes `name`, however often it is used."""
        return self._makers.get(name)

    def number(self, name: str) -> float | None:
        """The number that a constant of one element is."""
        value = self.constants.get(name)
        return float(value.reshape(())) if value is not None and value.size == 1 and value.dtype.kind == "f" else None

    def operands(self, node: Node, op: str) -> tuple[Node, str] | None:
        """The operand of a node with two inputs that an `op` makes, and the other input."""
        for i in (0, 1):
            inner = self.maker(node.inputs[i], op)
            if inner is not None:
                return inner, node.inputs[1 - i]
        return None

    def with_number(self, node: Node, wanted: float) -> str | None:
        """The other input of a node one of whose two inputs is the number `wanted`."""
        for i in (0, 1):
            value = self.number(node.inputs[i])
            if value is not None and abs(value - wanted) < 1e-4 * abs(wanted):
                return node.inputs[1 - i]
        return None


def fused(nodes: list[Node], constants: Mapping[str, Array], outputs: set[str], opset: Mapping[str, int]) -> list[Node]:
    """The nodes with patterns replaced; what the replaced ones used is left to whoever drops dead nodes."""
    for find in _PATTERNS:
        known = _Nodes(nodes, constants, outputs)
        nodes = [(find(node, known, opset) if _is_whole(node) else None) or node for node in nodes]
    return nodes


# Inputs of the operators in patterns.
_INPUTS: dict[str, tuple[int, ...]] = {
    "Add": (2,),
    "Div": (2,),
    "Erf": (1,),
    "IsNaN": (1,),
    "MatMul": (2,),
    "Mul": (2,),
    "Pow": (2,),
    "Sub": (2,),
}
_INPUTS |= {"ReduceMean": (1, 2), "Softmax": (1,), "Sqrt": (1,), "Where": (3,)}


def _is_whole(node: Node) -> bool:
    """Whether a node may be part of a pattern: one of ONNX's own operators with the inputs that it needs."""
    return not node.domain and len(node.inputs) in _INPUTS.get(node.op, ()) and all(node.inputs)


_Find = Callable[[Node, _Nodes, Mapping[str, int]], "Node | None"]


def _linear(node: Node, known: _Nodes, opset: Mapping[str, int]) -> Node | None:
    """X @ constant + constant."""
    if node.op != "Add":
        return None
    found = known.operands(node, "MatMul")
    if found is None:
        return None
    product, bias = found
    weight, addend = known.constants.get(product.inputs[1]), known.constants.get(bias)
    if weight is None or addend is None or weight.ndim != 2 or addend.shape != weight.shape[1:] or weight.dtype != F32:
        return None
    return replace(node, op="Linear", domain="modelc", inputs=(*product.inputs, bias), attributes={})


def _gelu(node: Node, known: _Nodes, opset: Mapping[str, int]) -> Node | None:
    """x (1 + erf(x / sqrt 2)) / 2, with the factors in any order."""
    if node.op != "Mul":
        return None
    x = None
    outer = known.with_number(node, 0.5)
    inner = known.maker(outer, "Mul") if outer is not None else None
    parts = known.operands(inner if inner is not None else node, "Add")
    halved = known.operands(node, "Mul")
    if inner is not None and parts is not None:  # (x * (1 + erf)) * 0.5
        x = _erf_of(parts[0], parts[1], known)
    elif parts is not None:  # (x * 0.5) * (1 + erf)
        half = known.maker(parts[1], "Mul")
        source = None if half is None else known.with_number(half, 0.5)
        x = None if source is None else _erf_of(parts[0], source, known)
    elif halved is not None:  # x * ((1 + erf) * 0.5)
        sum_ = known.with_number(halved[0], 0.5)
        add = known.maker(sum_, "Add") if sum_ is not None else None
        x = None if add is None else _erf_of(add, halved[1], known)
    return None if x is None else replace(node, op="Gelu", domain="", inputs=(x,), attributes={})


def _erf_of(add: Node, x: str, known: _Nodes) -> str | None:
    """`x` where the node is 1 + erf(x / sqrt 2)."""
    name = known.with_number(add, 1.0)
    erf = known.maker(name, "Erf") if name else None
    if erf is None:
        return None
    scaled = known.maker(erf.inputs[0], "Div")
    if scaled is not None:
        divisor = known.number(scaled.inputs[1])
        fits = divisor is not None and abs(divisor - 1.41421356) < 1e-4 and scaled.inputs[0] == x
        return x if fits else None
    scaled = known.maker(erf.inputs[0], "Mul")
    return x if scaled is not None and known.with_number(scaled, 0.70710678) == x else None


def _masked_softmax(node: Node, known: _Nodes, opset: Mapping[str, int]) -> Node | None:
    """Where(IsNaN(softmax), 0, softmax)."""
    if node.op != "Where" or opset.get("", 1) < 13:
        return None
    test = known.maker(node.inputs[0], "IsNaN")
    zero = known.constants.get(node.inputs[1])
    if test is None or zero is None or zero.size != 1 or float(zero.reshape(())) != 0:
        return None
    soft = known.made_by(node.inputs[2])
    if soft is None or soft.op != "Softmax" or test.inputs[0] != node.inputs[2]:
        return None
    if known.uses(node.inputs[2]) != 2:
        return None
    return replace(node, op="SoftmaxMasked", domain="modelc", inputs=soft.inputs, attributes=soft.attributes)


def _layer_norm(node: Node, known: _Nodes, opset: Mapping[str, int]) -> Node | None:
    """(x - mean) / sqrt(mean((x - mean)^2) + eps) * scale + bias over the last dimension."""
    if node.op != "Add":
        return None
    scaled = known.operands(node, "Mul")
    ratio = known.operands(scaled[0], "Div") if scaled is not None else None
    if scaled is None or ratio is None:
        return None
    bias, scale = scaled[1], ratio[1]
    deviation = known.maker(ratio[0].inputs[1], "Sqrt")
    centred = known.made_by(ratio[0].inputs[0])
    if deviation is None or centred is None or centred.op != "Sub" or not _is_vector(known, scale, bias):
        return None
    added = known.maker(deviation.inputs[0], "Add")
    if added is None:
        return None
    for i in (0, 1):
        eps, variance = known.number(added.inputs[1 - i]), known.maker(added.inputs[i], "ReduceMean")
        if eps is None or variance is None:
            continue
        square = known.maker(variance.inputs[0], "Pow")
        mean = known.maker(centred.inputs[1], "ReduceMean")
        if square is None or mean is None or known.number(square.inputs[1]) != 2.0:
            return None
        same = square.inputs[0] == ratio[0].inputs[0] and mean.inputs[0] == centred.inputs[0]
        if not same or not all(_is_last(known, each) for each in (variance, mean)):
            return None
        attributes = {"axis": -1, "epsilon": eps}
        inputs = (mean.inputs[0], scale, bias)
        return replace(node, op="LayerNormalization", inputs=inputs, attributes=attributes)
    return None


def _is_vector(known: _Nodes, *names: str) -> bool:
    values = [known.constants.get(name) for name in names]
    return all(value is not None and value.ndim == 1 and value.dtype == F32 for value in values)


def _is_last(known: _Nodes, mean: Node) -> bool:
    """Whether a mean is over the last dimension and keeps it."""
    axes = mean.attributes.get("axes")
    if len(mean.inputs) > 1:
        value = known.constants.get(mean.inputs[1])
        axes = None if value is None else np.asarray(value).reshape(-1).tolist()
    return bool(axes == [-1] and mean.attributes.get("keepdims", 1) == 1)


_PATTERNS: tuple[_Find, ...] = (_layer_norm, _linear, _gelu, _masked_softmax)
