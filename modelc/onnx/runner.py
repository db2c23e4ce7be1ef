"""Runs a graph: node by node the first time, from a recording when the same shapes come again."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from modelc.errors import BadInputError, ModelcError
from modelc.formats.onnx_plan import Constant, Graph, Node
from modelc.onnx.call import Call
from modelc.onnx.machine import Machine
from modelc.onnx.memory import Pool
from modelc.onnx.operator import Lowered, Operator
from modelc.onnx.profile import Profile
from modelc.onnx.recording import NotRecordableError, Recorder, Recording, ShapeChangedError
from modelc.onnx.registry import find_operator
from modelc.onnx.rewrite import KEPT_BYTES, KEPT_GROWTH, simplified
from modelc.onnx.values import Array, Value, type_name

MAX_RECORDINGS = 32
RECORDED_SHARE = 8  # recordings may fill one part in this many of a model's memory

# What NumPy and Python raise for shapes, types and values that do not fit.
FAULTS = (ValueError, TypeError, IndexError, KeyError, AttributeError, ArithmeticError, MemoryError, RecursionError)
FAULTS += (re.error, AssertionError, BufferError, NotImplementedError)  # type: ignore[assignment]


@dataclass(slots=True)
class Step:
    """A node with everything that is known before it runs.

    Attributes:
        node: the node.
        operator: what runs it.
        opset: version of its domain.
        constant: which inputs are constants.
        bodies: runners of the graphs in its attributes.
        drops: values that nobody needs after it.
    """

    node: Node
    operator: Operator
    opset: int
    constant: tuple[bool, ...]
    bodies: dict[str, GraphRunner]
    drops: tuple[str, ...]


class GraphRunner:
    """A graph that is ready to run. Not thread-safe.

    Attributes:
        graph: what is left of it after constants were folded and patterns fused.
        constants: values that are always the same, by name; those of outer graphs among them.
        steps: its nodes.

    Args:
        graph: the graph.
        opset: version of each domain.
        machine: runs instructions.
        constants: initializers of this graph and constants of outer ones.
        prepared: what was made of constants, shared by all graphs of a model.
        load: gives the arrays of constants in the plan.
    """

    def __init__(
        self,
        graph: Graph,
        opset: Mapping[str, int],
        machine: Machine,
        constants: Mapping[str, Array],
        prepared: dict[Any, Any],
        load: Callable[[Constant], Array],
    ) -> None:
        self.machine = machine
        self.prepared = prepared
        self._load = load
        self.constants = dict(constants)
        self.constants.update({name: load(constant) for name, constant in graph.initializers.items()})
        self._recordings: OrderedDict[Any, Recording | None] = OrderedDict()
        self.graph = simplified(graph, opset, self.constants, partial(self._once, opset=opset))
        self.steps = self._steps(opset)
        self.input_names = [each.name for each in graph.inputs if each.name not in graph.initializers]

    def _steps(self, opset: Mapping[str, int]) -> list[Step]:
        last: dict[str, int] = {}
        for i, node in enumerate(self.graph.nodes):
            last.update(dict.fromkeys((*node.inputs, *node.outer, *node.outputs), i))
        ends: dict[int, list[str]] = {}
        kept = {each.name for each in self.graph.outputs}
        for name, i in last.items():
            if name and name not in kept and name not in self.constants:
                ends.setdefault(i, []).append(name)
        return [self._step(node, opset, tuple(ends.get(i, ()))) for i, node in enumerate(self.graph.nodes)]

    def _step(self, node: Node, opset: Mapping[str, int], drops: tuple[str, ...] = ()) -> Step:
        bodies = {
            name: GraphRunner(value, opset, self.machine, self.constants, self.prepared, self._load)
            for name, value in node.attributes.items()
            if isinstance(value, Graph)
        }
        operator, version = find_operator(node, opset)
        constant = tuple(name in self.constants for name in node.inputs)
        return Step(node, operator, version, constant, bodies, drops)

    def _once(self, node: Node, opset: Mapping[str, int]) -> tuple[Value, ...]:
        """The outputs of a node whose inputs are constants; none where it is random."""
        step = self._step(node, opset)
        if step.operator.random:
            return ()
        given = sum(self.constants[name].nbytes for name in (*node.inputs, *node.outer) if name)
        with np.errstate(all="ignore"), self.machine.limited(max(KEPT_BYTES, KEPT_GROWTH * given)):
            return outputs_of(self.invoke(step, {}, None)[1])

    # ------------------------------------------------------------------------------------------------------- runs

    def run(self, feeds: Mapping[str, Value], profile: Profile | None = None) -> list[Value]:
        """The outputs of the graph, new arrays.

        Args:
            feeds: inputs, and values of outer graphs.
            profile: told how long each node took.
        """
        key = _signature(feeds)
        with np.errstate(all="ignore"):
            if key is None:
                return self._eager(feeds, profile)
            if key not in self._recordings:
                self._remember(key, None)
                return self._eager(feeds, profile)
            recording = self._recordings[key]
            self._recordings.move_to_end(key)
            try:
                if recording is None:
                    recording = Recorder(self).record(feeds)
                    self._remember(key, recording)
                    return recording.outputs_copied()
                return recording.run(feeds, profile)
            except (NotRecordableError, ShapeChangedError):
                self._recordings[key] = _NEVER
                return self._eager(feeds, profile)

    def _remember(self, key: Any, recording: Recording | None) -> None:
        self._recordings[key] = recording
        limit = self.machine.memory_limit // RECORDED_SHARE
        while len(self._recordings) > MAX_RECORDINGS or (
            sum(each.total_bytes for each in self._recordings.values() if each is not None) > limit
            and len(self._recordings) > 1
        ):
            self._recordings.popitem(last=False)

    def _eager(self, feeds: Mapping[str, Value], profile: Profile | None) -> list[Value]:
        values = dict(feeds)
        held = 0
        for step in self.steps:
            start = perf_counter()
            _, result = self.invoke(step, values, None)
            outputs = outputs_of(result)
            values.update(zip(step.node.outputs, outputs, strict=False))
            held += sum(map(_own_bytes, outputs))
            if held > self.machine.memory_limit:
                got, expected = f"{held} bytes", f"at most {self.machine.memory_limit}"
                what = f"{step.node.title}: the values of the graph need too much memory"
                raise BadInputError(what, got=got, expected=expected)
            for name in step.drops:
                held -= _own_bytes(values.pop(name, None))
            if profile is not None:
                profile.add(step.node, perf_counter() - start)
        return [_copied(self.value(each.name, values)) for each in self.graph.outputs]

    def invoke(self, step: Step, values: Mapping[str, Value], pool: Pool | None) -> tuple[Call, Any]:
        """Runs one node; returns its call and what its operator returned.

        Raises:
            ModelcError: The node cannot be computed; it is named.
        """
        node = step.node
        bodies = partial(self._body, step, values)
        call = Call(node, step.opset, self.machine, bodies, step.constant, self.prepared, self._load, pool)
        inputs = [self.value(name, values) if name else None for name in node.inputs]
        try:
            return call, step.operator.run(call, *inputs)
        except ModelcError:
            raise
        except FAULTS as error:
            got = ", ".join(map(_described, inputs))
            raise call.fail(
                f"it cannot be computed ({type(error).__name__}: {error})", got=got or "no inputs"
            ) from None

    def value(self, name: str, values: Mapping[str, Value]) -> Value:
        """The value `name`, made in this run or constant."""
        return values[name] if name in values else self.constants.get(name)

    def _body(self, step: Step, values: Mapping[str, Value], name: str, inputs: Sequence[Value]) -> list[Value]:
        runner = step.bodies.get(name)
        if runner is None:
            raise BadInputError(f"{step.node.title}: the attribute '{name}' is not a graph")
        if len(inputs) != len(runner.input_names):
            got, expected = f"{len(inputs)} inputs", f"{len(runner.input_names)}"
            raise BadInputError(f"{step.node.title}: the graph '{name}' takes others", got=got, expected=expected)
        feeds = dict(zip(runner.input_names, inputs, strict=True))
        feeds.update({outer: values[outer] for outer in step.node.outer if outer in values})
        return runner.run(feeds)


class _Never(Recording):
    """Stands for shapes whose runs cannot be recorded."""

    def __init__(self) -> None:
        super().__init__({}, [], [], Pool())

    def run(self, feeds: Mapping[str, Value], profile: Profile | None = None) -> list[Value]:
        raise NotRecordableError


_NEVER = _Never()


def outputs_of(result: Any) -> tuple[Value, ...]:
    """What an operator returned, as a tuple; NumPy's scalars as arrays."""
    if isinstance(result, Lowered):
        result = result.outputs
    values = result if isinstance(result, tuple) else (result,)
    return tuple(np.asarray(value) if isinstance(value, np.generic) else value for value in values)


def _signature(feeds: Mapping[str, Value]) -> Any:
    """What a recording is good for; None for values that cannot be recorded."""
    key = []
    for name, value in feeds.items():
        if type(value) is not np.ndarray or value.dtype.hasobject:
            return None
        key.append((name, value.shape, value.dtype))
    return tuple(key)


def _own_bytes(value: Value) -> int:
    if isinstance(value, list):
        return sum(map(_own_bytes, value))
    return value.nbytes if isinstance(value, np.ndarray) and value.base is None else 0


def _copied(value: Value) -> Value:
    if isinstance(value, list):
        return [_copied(each) for each in value]
    return value if value is None or isinstance(value, dict) else np.array(value, order="C")


def _described(value: Value) -> str:
    if isinstance(value, np.ndarray):
        return f"{type_name(value.dtype)} {list(value.shape)}"
    return "nothing" if value is None else f"a sequence of {len(value)}"
