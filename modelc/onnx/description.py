"""What a graph says about itself: inputs, outputs, operators, and which of them modelc cannot run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from modelc.formats.onnx_plan import Declared, read_plan
from modelc.ir import JSON
from modelc.onnx.registry import nodes_of, unsupported


@dataclass(frozen=True, slots=True)
class Description:
    """A graph in short.

    Attributes:
        inputs: what goes in.
        outputs: what comes out.
        opset: version of each domain.
        operators: how many nodes of each, in graphs inside nodes too.
        unsupported: operators that modelc does not have.
    """

    inputs: tuple[Declared, ...]
    outputs: tuple[Declared, ...]
    opset: dict[str, int]
    operators: dict[str, int]
    unsupported: list[str]


def describe(plan: JSON) -> Description:
    """What is in an execution plan.

    Raises:
        BadFileError, UnsupportedError: The plan is damaged, or of another version.
    """
    found = read_plan(plan)
    graph = found.graph
    counts = Counter(f"{node.domain}.{node.op}" if node.domain else node.op for node in nodes_of(graph))
    inputs = tuple(each for each in graph.inputs if each.name not in graph.initializers)
    operators = dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
    return Description(inputs, graph.outputs, dict(found.opset), operators, unsupported(graph, found.opset))
