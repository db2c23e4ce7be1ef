"""All operators by domain, name and version."""

from __future__ import annotations

from collections.abc import Mapping

from modelc.errors import UnsupportedError, did_you_mean
from modelc.formats.onnx_plan import Graph, Node
from modelc.onnx.operator import Operator, Table
from modelc.onnx.operators.attention import ATTENTION
from modelc.onnx.operators.casts import CASTS
from modelc.onnx.operators.classical import CLASSICAL
from modelc.onnx.operators.control import CONTROL
from modelc.onnx.operators.convolutions import CONVOLUTIONS
from modelc.onnx.operators.einsum import EINSUM
from modelc.onnx.operators.images import IMAGES
from modelc.onnx.operators.indexing import INDEXING
from modelc.onnx.operators.losses import LOSSES
from modelc.onnx.operators.maps import MAPS
from modelc.onnx.operators.matrices import FUSED_MATRICES, MATRICES
from modelc.onnx.operators.microsoft import MICROSOFT
from modelc.onnx.operators.norms import FUSED_NORMS, NORMS
from modelc.onnx.operators.padding import PADDING
from modelc.onnx.operators.pairs import PAIRS
from modelc.onnx.operators.pooling import POOLING
from modelc.onnx.operators.quantization import QUANTIZATION
from modelc.onnx.operators.random_numbers import RANDOM
from modelc.onnx.operators.recurrent import RECURRENT
from modelc.onnx.operators.reductions import REDUCTIONS
from modelc.onnx.operators.resizing import RESIZING
from modelc.onnx.operators.shapes import SHAPES
from modelc.onnx.operators.signals import SIGNALS
from modelc.onnx.operators.texts import TEXTS

OLDEST_OPSET = 7
FUSED = "modelc"  # the domain of what several nodes are fused into

# Tables of each domain.
DOMAINS: dict[str, tuple[Table, ...]] = {
    "": (
        TEXTS,
        SIGNALS,
        RESIZING,
        LOSSES,
        IMAGES,
        ATTENTION,
        CASTS,
        CONTROL,
        CONVOLUTIONS,
        EINSUM,
        INDEXING,
        MAPS,
        MATRICES,
        NORMS,
        PADDING,
        PAIRS,
        POOLING,
        QUANTIZATION,
        RANDOM,
        RECURRENT,
        REDUCTIONS,
        SHAPES,
    ),
    "ai.onnx.ml": (CLASSICAL,),
    "com.microsoft": (MICROSOFT,),
    FUSED: (FUSED_MATRICES, FUSED_NORMS),
}

_OPERATORS = {
    domain: {name: entry for table in tables for name, entry in table.items()} for domain, tables in DOMAINS.items()
}


def find_operator(node: Node, opset: Mapping[str, int]) -> tuple[Operator, int]:
    """The operator of a node, and the version of its domain.

    Raises:
        UnsupportedError: modelc does not have it, or not in the model's version.
    """
    version = opset.get(node.domain, 1)
    known = _OPERATORS.get(node.domain)
    if known is None:
        domains = ", ".join(f"'{domain}'" for domain in DOMAINS if domain != FUSED)
        raise UnsupportedError(f"{node.title}: unknown domain", got=f"'{node.domain}'", expected=domains)
    if not node.domain and version < OLDEST_OPSET:
        hint = "convert the model with onnx.version_converter"
        raise UnsupportedError(f"opset {version} is too old", expected=f"{OLDEST_OPSET} or newer", hint=hint)
    entry = known.get(node.op)
    if entry is None:
        near = did_you_mean(node.op, known) or None
        raise UnsupportedError(f"{node.title}: the operator '{node.op}' is not supported", hint=near)
    if isinstance(entry, dict):
        fitting = [since for since in entry if since <= version]
        if not fitting:
            expected = f"version {min(entry)} or newer"
            raise UnsupportedError(f"{node.title}: this version is not supported", got=version, expected=expected)
        entry = entry[max(fitting)]
    return entry if isinstance(entry, Operator) else Operator(entry), version


def unsupported(graph: Graph, opset: Mapping[str, int]) -> list[str]:
    """Names of operators in a graph and those inside it that modelc does not have, ascending."""
    missing = set()
    for node in nodes_of(graph):
        try:
            find_operator(node, opset)
        except UnsupportedError:
            missing.add(f"{node.domain}.{node.op}" if node.domain else node.op)
    return sorted(missing)


def nodes_of(graph: Graph) -> list[Node]:
    """The nodes of a graph and of those inside it."""
    found = []
    for node in graph.nodes:
        found.append(node)
        for value in node.attributes.values():
            if isinstance(value, Graph):
                found += nodes_of(value)
    return found
