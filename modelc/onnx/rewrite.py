"""A graph made simpler before it runs: constants folded, patterns fused, dead nodes dropped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from modelc.errors import ModelcError
from modelc.formats.onnx_plan import Graph, Node
from modelc.onnx.fusions import fused
from modelc.onnx.values import Array, Value

KEPT_BYTES = 1 << 20  # a folded value may always have so many,
KEPT_GROWTH = 16  # or so many times those of what it was made from

Once = Callable[[Node], "tuple[Value, ...]"]


def simplified(graph: Graph, opset: Mapping[str, int], constants: dict[str, Array], once: Once) -> Graph:
    """The graph without what need not run each time.

    Args:
        graph: the graph.
        opset: version of each domain.
        constants: values that are always the same; folded ones are added.
        once: runs a node whose inputs are constants; returns nothing for one that must run each time.
    """
    nodes = [node for node in graph.nodes if not _folded(node, constants, once)]
    outputs = {each.name for each in graph.outputs}
    nodes = fused(_alive(nodes, outputs), constants, outputs, opset)
    return replace(graph, nodes=tuple(_alive(nodes, outputs)))


def _folded(node: Node, constants: dict[str, Array], once: Once) -> bool:
    """Whether the node's outputs are constants now."""
    names = [name for name in (*node.inputs, *node.outer) if name]
    if not all(name in constants for name in names):
        return False
    try:
        values = once(node)
    except ModelcError:
        return False  # where the node is needed, the same error will be raised when it runs
    limit = max(KEPT_BYTES, KEPT_GROWTH * sum(constants[name].nbytes for name in names))
    plain = all(isinstance(value, np.ndarray) for value in values)
    if not values or not plain or (names and sum(value.nbytes for value in values) > limit):
        return False
    if not names and node.op != "Constant" and sum(value.nbytes for value in values) > limit:
        return False
    for name, value in zip(node.outputs, values, strict=False):
        if name:
            array = np.ascontiguousarray(value) if value.ndim else np.array(value)
            array.flags.writeable = False
            constants[name] = array
    return True


def _alive(nodes: list[Node], wanted: set[str]) -> list[Node]:
    """The nodes that something needs."""
    needed = set(wanted)
    alive = []
    for node in reversed(nodes):
        if needed.intersection(node.outputs):
            needed.update(node.inputs)
            needed.update(node.outer)
            alive.append(node)
    return alive[::-1]
