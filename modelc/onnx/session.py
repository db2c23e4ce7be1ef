"""A model's graph, ready to run: plan, constants, machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from modelc.errors import BadFileError
from modelc.formats.onnx_plan import KEY, Constant, Plan, read_plan
from modelc.ir import Model
from modelc.onnx.machine import Machine
from modelc.onnx.profile import Profile
from modelc.onnx.runner import GraphRunner
from modelc.onnx.values import Array, Value, constant_array


class Session:
    """Runs the graph of one model. Not thread-safe.

    Attributes:
        plan: the graph as the model has it.
        profile: told how long nodes take; None for no profile.

    Args:
        model: with an execution plan.
        machine: runs instructions.

    Raises:
        BadFileError: the model has no plan, or a damaged one.
        UnsupportedError: an operator that modelc does not have.
    """

    def __init__(self, model: Model, machine: Machine) -> None:
        if KEY not in model.metadata:
            raise BadFileError("the model has no execution plan", expected=f"'{KEY}' in its metadata")
        self.plan: Plan = read_plan(model.metadata[KEY])
        self.profile: Profile | None = None
        loaded: dict[str, Array] = {}

        def load(constant: Constant) -> Array:
            if constant.tensor is None:
                return constant_array(constant, model.tensors)
            if constant.tensor not in loaded:
                loaded[constant.tensor] = constant_array(constant, model.tensors)
            return loaded[constant.tensor]

        self._runner = GraphRunner(self.plan.graph, self.plan.opset, machine, {}, {}, load)
        self.inputs = [each for each in self.plan.graph.inputs if each.name in self._runner.input_names]
        self.outputs = list(self.plan.graph.outputs)

    def run(self, feeds: Mapping[str, Value]) -> dict[str, Any]:
        """Outputs by name.

        Raises:
            BadInputError: a node cannot be computed for these inputs; it is named.
        """
        return dict(zip((each.name for each in self.outputs), self.run_values(feeds), strict=True))

    def run_values(self, feeds: Mapping[str, Value]) -> list[Value]:
        """Outputs in the graph's order."""
        if self.profile is not None:
            self.profile.runs += 1
        return self._runner.run(feeds, self.profile)
