"""A run of a graph for certain input shapes, recorded so that it can be repeated.

While a graph is recorded it is computed as always, and every value gets its place. What depends on shapes alone is
computed once and for all. Of nodes that emit instructions only these are kept, in one table for as many nodes as
possible; views need nothing. The rest are run in Python again, and their results copied to their places. Where such a
result comes out with another shape the recording does not hold, and the run starts again without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from modelc.formats.onnx_plan import Node
from modelc.onnx.machine import Machine, as_table
from modelc.onnx.memory import Pool
from modelc.onnx.operator import Lowered
from modelc.onnx.profile import Profile
from modelc.onnx.values import Array, Value

if TYPE_CHECKING:
    from modelc.onnx.runner import GraphRunner, Step


class NotRecordableError(Exception):
    """A value is no plain array: the graph is run node by node."""


class ShapeChangedError(Exception):
    """A value has another shape or type than when the run was recorded."""


class _Part(Protocol):
    def run(self, profile: Profile | None) -> None: ...


class _Instructions:
    """Consecutive instructions of one or more nodes."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._rows: list[list[int]] = []
        self._nodes: list[Node] = []
        self._work = 0
        self._kept: list[Value] = []  # what the instructions refer to
        self._table: npt.NDArray[np.int64] | None = None

    def add(self, node: Node, rows: list[list[int]], work: int, kept: list[Value]) -> None:
        self._rows += rows
        self._nodes += [node] * len(rows)
        self._work += work
        self._kept += kept

    def run(self, profile: Profile | None) -> None:
        if self._table is None:
            self._table = as_table(self._rows)
        if profile is None:
            self._machine.run(self._table, self._work)
            return
        cycles = np.zeros(len(self._rows), np.int64)
        start = perf_counter()
        self._machine.run(self._table, self._work, cycles)
        seconds = (perf_counter() - start) / max(int(cycles.sum()), 1)
        for node, count in zip(self._nodes, cycles.tolist(), strict=True):
            profile.add(node, count * seconds)


class _PythonNode:
    """A node that is run in Python."""

    def __init__(self, runner: GraphRunner, step: Step, values: dict[str, Value], targets: list[Array | None]) -> None:
        self._runner = runner
        self._step = step
        self._values = values
        self._targets = targets

    def run(self, profile: Profile | None) -> None:
        from modelc.onnx.runner import outputs_of

        start = perf_counter()
        _, result = self._runner.invoke(self._step, self._values, None)
        for target, value in zip(self._targets, outputs_of(result), strict=False):
            if target is None:
                continue
            if type(value) is not np.ndarray or value.shape != target.shape or value.dtype != target.dtype:
                raise ShapeChangedError
            target[...] = value
        if profile is not None:
            profile.add(self._step.node, perf_counter() - start)


class Recording:
    """A recorded run.

    Attributes:
        total_bytes: memory that its values take.
    """

    def __init__(
        self, inputs: Mapping[str, Array], parts: list[_Part], outputs: list[Array | None], pool: Pool
    ) -> None:
        self._pool = pool  # instructions know only addresses in it
        self._inputs = inputs
        self._parts = parts
        self._outputs = outputs
        self.total_bytes = pool.total_bytes + sum(array.nbytes for array in inputs.values())

    def run(self, feeds: Mapping[str, Value], profile: Profile | None = None) -> list[Value]:
        """The outputs for other values of the same shapes."""
        for name, target in self._inputs.items():
            target[...] = feeds[name]
        for part in self._parts:
            part.run(profile)
        return self.outputs_copied()

    def outputs_copied(self) -> list[Value]:
        """The outputs of the last run, new arrays."""
        return [None if value is None else np.array(value, order="C") for value in self._outputs]


class Recorder:
    """Makes one recording of a graph."""

    def __init__(self, runner: GraphRunner) -> None:
        self._runner = runner
        self._pool = Pool()
        self._parts: list[_Part] = []
        self._open: _Instructions | None = None

    def record(self, feeds: Mapping[str, Value]) -> Recording:
        """Runs the graph and records the run.

        Raises:
            NotRecordableError: A value is no plain array.
        """
        inputs = {name: np.array(value, order="C") for name, value in feeds.items()}
        values: dict[str, Value] = dict(inputs)
        self._nodes(self._runner, values, set())
        outputs = [self._runner.value(each.name, values) for each in self._runner.graph.outputs]
        return Recording(inputs, self._parts, outputs, self._pool)

    def _nodes(self, runner: GraphRunner, values: dict[str, Value], fixed: set[str]) -> None:
        """Runs the nodes; `fixed` has the values that depend on shapes alone."""
        for step in runner.steps:
            node = step.node
            is_fixed = [not name or name not in values or name in fixed for name in (*node.inputs, *node.outer)]
            if node.op == "If" and not node.domain and is_fixed[0]:
                outputs = self._branch(runner, step, values, fixed)
            else:
                outputs = self._node(runner, step, values, is_fixed)
                if step.operator.of_shape or (all(is_fixed) and not step.operator.random):
                    fixed.update(node.outputs)
            for name, value in zip(node.outputs, outputs, strict=False):
                if name:
                    values[name] = value
                    if value is not None:
                        self._pool.hold(value)
            self._pool.sweep()
            for name in step.drops:
                dropped = values.pop(name, None)
                if dropped is not None:
                    self._pool.release(dropped)

    def _node(
        self, runner: GraphRunner, step: Step, values: dict[str, Value], is_fixed: list[bool]
    ) -> tuple[Value, ...]:
        from modelc.onnx.runner import outputs_of

        # What is computed once and for all must not lie in memory that is used again.
        fixed = step.operator.of_shape or (all(is_fixed) and not step.operator.random)
        call, result = runner.invoke(step, values, None if fixed else self._pool)
        outputs = outputs_of(result)
        if any(value is not None and (type(value) is not np.ndarray or value.dtype.hasobject) for value in outputs):
            raise NotRecordableError
        if fixed:
            return outputs
        data = step.operator.data
        parameters_fixed = data is None or all(is_fixed[data:])
        if isinstance(result, Lowered) and parameters_fixed:
            if self._open is None:
                self._open = _Instructions(runner.machine)
                self._parts.append(self._open)
            read = [runner.value(name, values) for name in step.node.inputs if name]
            self._open.add(step.node, call.rows or [], call.work, [*call.kept, *read])
            return outputs
        if (
            data is not None
            and parameters_fixed
            and self._are_views(outputs, runner.value(step.node.inputs[0], values))
        ):
            return outputs
        return self._in_python(runner, step, values, outputs)

    def _are_views(self, outputs: tuple[Value, ...], source: Value) -> bool:
        return isinstance(source, np.ndarray) and all(
            value is not None and _owner(value) is _owner(source) for value in outputs
        )

    def _in_python(
        self, runner: GraphRunner, step: Step, values: dict[str, Value], outputs: tuple[Value, ...]
    ) -> tuple[Value, ...]:
        targets: list[Array | None] = []
        for value in outputs:
            target = None
            if value is not None:
                target = self._pool.empty(value.shape, value.dtype)
                target[...] = value
            targets.append(target)
        names = {name for name in (*step.node.inputs, *step.node.outer) if name in values}
        self._parts.append(_PythonNode(runner, step, {name: values[name] for name in names}, targets))
        self._open = None
        return tuple(targets)

    def _branch(self, runner: GraphRunner, step: Step, values: dict[str, Value], fixed: set[str]) -> tuple[Value, ...]:
        """The outputs of the branch that shapes alone decide for, its nodes recorded like the graph's own."""
        condition = runner.value(step.node.inputs[0], values)
        body = step.bodies["then_branch" if np.asarray(condition).reshape(-1)[0] else "else_branch"]
        inner: dict[str, Value] = {name: values[name] for name in step.node.outer if name in values}
        inner_fixed = fixed & inner.keys()
        for value in inner.values():  # they live as long as the branch needs them, and after it as the graph does
            self._pool.hold(value)
        self._nodes(body, inner, inner_fixed)
        outputs = tuple(body.value(each.name, inner) for each in body.graph.outputs)
        fixed.update(
            outer
            for outer, each in zip(step.node.outputs, body.graph.outputs, strict=False)
            if each.name in inner_fixed or each.name not in inner
        )
        return outputs


def _owner(array: Any) -> Any:
    while getattr(array, "base", None) is not None:
        array = array.base
    return array
