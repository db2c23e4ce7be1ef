"""What an operator is given beside its inputs: attributes, memory, instructions, errors that name the node."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from modelc.errors import BadInputError, ModelcError, UnsupportedError
from modelc.formats.onnx_plan import Constant, Node
from modelc.onnx.machine import Machine, address, as_table
from modelc.onnx.memory import Pool
from modelc.onnx.values import Array, Value, type_name

T = TypeVar("T")


class Call:
    """One execution of one node.

    Attributes:
        node: the node.
        opset: version of its domain.
        constant: which inputs are constants of the model.
        rows: recorded instructions; None when they are only run.
        work: multiply-adds or the like of the recorded instructions.
        kept: arrays that recorded instructions refer to.

    Args:
        node: the node.
        opset: version of its domain.
        machine: runs instructions.
        bodies: runs the graphs in the node's attributes: (attribute, inputs) -> outputs.
        constant: which inputs are constants of the model.
        prepared: what was made of constants before, by key.
        load: gives the arrays of constants in the plan.
        pool: where outputs lie while a run is recorded.
    """

    def __init__(
        self,
        node: Node,
        opset: int,
        machine: Machine,
        bodies: Callable[[str, Sequence[Value]], list[Value]],
        constant: Sequence[bool],
        prepared: dict[Any, Any],
        load: Callable[[Constant], Array],
        pool: Pool | None = None,
    ) -> None:
        self.node = node
        self.opset = opset
        self.constant = constant
        self.machine = machine
        self.rows: list[list[int]] | None = None if pool is None else []
        self.work = 0
        self.kept: list[Array] = []
        self._bodies = bodies
        self._prepared = prepared
        self._load = load
        self._pool = pool

    # ------------------------------------------------------------------------------------------------ attributes

    def attribute(self, name: str, kind: type[T], default: T | None = None) -> T:
        """An attribute of type int, float, str or list; required without a default."""
        value = self.node.attributes.get(name, default)
        if value is None:
            raise self.fail(f"the attribute '{name}' is missing")
        if type(value) is not kind:
            got = type(value).__name__.lower()
            raise self.fail(f"the attribute '{name}' has a wrong type", got=got, expected=kind.__name__)
        return value

    def optional(self, name: str, kind: type[T]) -> T | None:
        """An attribute that may be missing."""
        return self.attribute(name, kind) if name in self.node.attributes else None

    def integers(self, name: str, default: Sequence[int] | None = None, length: int | None = None) -> list[int]:
        """A list of integers, of `length` if given."""
        values = self.attribute(name, list, None if default is None else list(default))
        if not all(type(value) is int for value in values):
            raise self.fail(f"the attribute '{name}' has a wrong type", expected="integers")
        if length is not None and len(values) != length:
            raise self.fail(f"the attribute '{name}' has a wrong length", expected=length, got=len(values))
        return values

    def choice(self, name: str, default: str, choices: Sequence[str]) -> str:
        """A string that is one of `choices`."""
        value = self.attribute(name, str, default)
        if value not in choices:
            raise self.unsupported(f"the attribute '{name}'", got=f"'{value}'", expected=", ".join(choices))
        return value

    def constant_value(self, constant: Any) -> Array:
        """The array of an attribute that is a tensor."""
        if not isinstance(constant, Constant):
            raise self.fail("an attribute has a wrong type", expected="a tensor")
        return self._load(constant)

    @property
    def n_outputs(self) -> int:
        """How many outputs are named."""
        return len(self.node.outputs)

    def wants(self, index: int) -> bool:
        """Whether output `index` is used."""
        return index < len(self.node.outputs) and self.node.outputs[index] != ""

    # -------------------------------------------------------------------------------------------------- subgraphs

    def body(self, name: str, inputs: Sequence[Value]) -> list[Value]:
        """The outputs of the graph in the attribute `name`."""
        return self._bodies(name, inputs)

    # ----------------------------------------------------------------------------------------------------- memory

    def room(self, shape: Sequence[int], dtype: Any = np.float32) -> None:
        """Makes sure that an array of `shape` may be allocated.

        Raises:
            BadInputError: It is larger than the model may use.
        """
        if any(size < 0 for size in shape):
            raise self.fail("a negative size", got=list(shape))
        n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
        if n_bytes > self.machine.memory_limit:
            raise self.fail(
                "the result is too large",
                got=f"{n_bytes} bytes for {type_name(np.dtype(dtype))} {list(shape)}",
                expected=f"at most {self.machine.memory_limit} bytes",
            )

    def empty(self, shape: Sequence[int], dtype: Any = np.float32) -> Array:
        """An array without content, for an output."""
        self.room(shape, dtype)
        if self._pool is not None:
            return self._pool.empty(shape, np.dtype(dtype))
        return np.empty(shape, dtype)

    def prepared(self, index: int, array: Array, key: Any, make: Callable[[], T]) -> T:
        """What `make` returns for input `index`, which is `array`; made only once for a constant of the model."""
        if index >= len(self.constant) or not self.constant[index]:
            return make()
        found = self._prepared.get((id(array), key))
        if found is None:
            recording, self.rows, pool, self._pool = self.rows, None, self._pool, None
            try:
                found = (array, make())  # the array is kept, or another one could get its id
            finally:
                self.rows, self._pool = recording, pool
            self._prepared[id(array), key] = found
        made: T = found[1]
        return made

    # ----------------------------------------------------------------------------------------------- instructions

    def emit(self, opcode: str, *fields: int, work: int = 0) -> None:
        """Run an instruction, and record it where a run is recorded."""
        row = self.machine.row(opcode, fields)
        self.machine.run(as_table([row]), work)
        if self.rows is not None:
            self.rows.append(row)
            self.work += work

    def numbers(self, values: Any) -> int:
        """The address of int64 numbers that an instruction refers to."""
        return address(self.lasting(np.ascontiguousarray(values, np.int64)))

    def lasting(self, array: Array) -> Array:
        """`array`, which instructions refer to, kept as long as they are."""
        self.kept.append(array)
        return array

    # ----------------------------------------------------------------------------------------------------- errors

    def fail(self, what: str, got: object = None, expected: object = None) -> ModelcError:
        """The error that the node cannot be computed for its inputs or attributes."""
        return BadInputError(f"{self.node.title}: {what}", got=got, expected=expected)

    def unsupported(self, what: str, got: object = None, expected: object = None) -> ModelcError:
        """The error that modelc does not do what the node asks for."""
        return UnsupportedError(f"{self.node.title}: {what} is not supported", got=got, expected=expected)

    def axis(self, axis: int, n_dims: int) -> int:
        """`axis` counted from the front."""
        if not -n_dims <= axis < max(n_dims, 1):
            raise self.fail("no such axis", got=axis, expected=f"{-n_dims} to {n_dims - 1}")
        return axis + n_dims if axis < 0 else axis
