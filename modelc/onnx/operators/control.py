"""Graphs in nodes (If, Loop, Scan), sequences and optional values."""

from __future__ import annotations

import numpy as np

from modelc.onnx.call import Call
from modelc.onnx.operator import Table
from modelc.onnx.values import Array, Value

MAX_TRIPS = 1 << 24  # of a loop whose condition never ends it


def if_(call: Call, condition: Array) -> tuple[Value, ...]:
    """One of two graphs."""
    if condition.size != 1:
        raise call.fail("the condition must be one value", got=list(condition.shape))
    return tuple(call.body("then_branch" if condition.reshape(-1)[0] else "else_branch", ()))


def loop(call: Call, trips: Array | None = None, condition: Array | None = None, *state: Value) -> tuple[Value, ...]:
    """A graph again and again; values of each run are collected."""
    most = MAX_TRIPS if trips is None else int(trips.reshape(-1)[0])
    goes_on = condition is None or bool(condition.reshape(-1)[0])
    collected: list[list[Array]] = []
    carried = list(state)
    n = 0
    held = 0
    while goes_on and n < most:
        if n == MAX_TRIPS:
            raise call.fail("the loop does not end", expected=f"at most {MAX_TRIPS} runs")
        again, *rest = call.body("body", [np.array(n, np.int64), np.array(goes_on), *carried])
        carried, scanned = rest[: len(state)], rest[len(state) :]
        collected = collected or [[] for _ in scanned]
        for values, value in zip(collected, scanned, strict=True):
            values.append(value)
            held += value.nbytes
        if held > call.machine.memory_limit:
            raise call.fail("the loop's results are too large", got=f"{held} bytes")
        goes_on = bool(again.reshape(-1)[0])
        n += 1
    if not collected:
        collected = [[] for _ in range(call.n_outputs - len(state))]
    return (*carried, *(np.stack(values) if values else np.zeros((0,), np.float32) for values in collected))


def scan(call: Call, *inputs: Array) -> tuple[Value, ...]:
    """A graph for each element along an axis of the inputs; its results are put together the same way."""
    n_scanned = call.attribute("num_scan_inputs", int)
    n_state = len(inputs) - n_scanned
    if not 0 < n_scanned <= len(inputs):
        raise call.fail("a wrong number of inputs to scan", got=n_scanned, expected=f"1 to {len(inputs)}")
    n_collected = call.n_outputs - n_state
    backwards = call.integers("scan_input_directions", [0] * n_scanned, n_scanned)
    axes = call.integers("scan_input_axes", [0] * n_scanned, n_scanned)
    scanned = [
        np.flip(moved, 0) if back else moved
        for x, axis, back in zip(inputs[n_state:], axes, backwards, strict=True)
        for moved in [np.moveaxis(x, call.axis(axis, x.ndim), 0)]
    ]
    if len({len(x) for x in scanned}) != 1:
        raise call.fail("the inputs have different lengths", got=[len(x) for x in scanned])
    carried: list[Value] = list(inputs[:n_state])
    collected: list[list[Array]] = [[] for _ in range(n_collected)]
    for t in range(len(scanned[0])):
        results = call.body("body", [*carried, *(x[t] for x in scanned)])
        carried = results[:n_state]
        for values, value in zip(collected, results[n_state:], strict=True):
            values.append(value)
    turned = call.integers("scan_output_directions", [0] * n_collected, n_collected)
    targets = call.integers("scan_output_axes", [0] * n_collected, n_collected)
    outputs = []
    for values, back, axis in zip(collected, turned, targets, strict=True):
        stacked = np.stack(values[::-1] if back else values) if values else np.zeros((0,), np.float32)
        outputs.append(np.moveaxis(stacked, 0, axis))
    return (*carried, *outputs)


def scan_of_batches(call: Call, lengths: Array | None, *inputs: Array) -> tuple[Value, ...]:
    """Version 8: the first dimension of every input is the batch."""
    if lengths is not None:
        raise call.unsupported("Scan with sequence lengths")
    each = [scan(call, *(x[i] for x in inputs)) for i in range(len(inputs[0]))]
    return tuple(np.stack(values) for values in zip(*each, strict=True))


# ------------------------------------------------------------------------------------------- sequences and optionals


def sequence_construct(call: Call, *values: Array) -> list[Array]:
    """A sequence of the inputs."""
    if any(value is None for value in values):
        raise call.fail("an input is left out")
    return list(values)


def sequence_empty(call: Call) -> list[Array]:
    """A sequence without elements."""
    return []


def _place(call: Call, position: Array | None, n: int, default: int) -> int:
    place = default if position is None else int(position.reshape(-1)[0])
    if not -n <= place <= n:
        raise call.fail("a position is out of range", got=place, expected=f"{-n} to {n}")
    return place + n if place < 0 else place


def sequence_at(call: Call, values: list[Array], position: Array) -> Array:
    """One element."""
    return values[_place(call, position, len(values), 0)]


def sequence_insert(call: Call, values: list[Array], value: Array, position: Array | None = None) -> list[Array]:
    """The sequence with one element more."""
    place = _place(call, position, len(values), len(values))
    return [*values[:place], value, *values[place:]]


def sequence_erase(call: Call, values: list[Array], position: Array | None = None) -> list[Array]:
    """The sequence with one element less."""
    place = _place(call, position, len(values), len(values) - 1)
    return [*values[:place], *values[place + 1 :]]


def sequence_length(call: Call, values: list[Array]) -> Array:
    """The number of elements."""
    return np.array(len(values), np.int64)


def split_to_sequence(call: Call, x: Array, sizes: Array | None = None) -> list[Array]:
    """Parts along an axis, of one size, of given sizes, or of 1 (then, unless `keepdims`, without the dimension)."""
    axis = call.axis(call.attribute("axis", int, 0), x.ndim)
    n = x.shape[axis]
    if sizes is None:
        parts = np.split(x, n, axis) if n else []
        return parts if call.attribute("keepdims", int, 1) else [np.squeeze(part, axis) for part in parts]
    if sizes.ndim == 0:
        step = int(sizes)
        if step < 1:
            raise call.fail("a wrong size", got=step)
        return np.split(x, range(step, n, step), axis)
    if sizes.sum() != n or (sizes < 0).any():
        raise call.fail("the sizes do not fit", got=sizes.tolist(), expected=f"{n} in all")
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def concat_from_sequence(call: Call, values: list[Array]) -> Array:
    """All elements together, along an axis or a new one."""
    axis = call.attribute("axis", int)
    return np.stack(values, axis) if call.attribute("new_axis", int, 0) else np.concatenate(values, axis)


def sequence_map(call: Call, values: list[Value], *others: Value) -> tuple[Value, ...]:
    """A graph for each element; other sequences give theirs, and values stay as they are."""
    results = [
        call.body("body", [value, *(other[i] if isinstance(other, list) else other for other in others)])
        for i, value in enumerate(values)
    ]
    return tuple([result[i] for result in results] for i in range(call.n_outputs))


def optional(call: Call, value: Value = None) -> Value:
    """A value, or none."""
    return value


def optional_has_element(call: Call, value: Value = None) -> Array:
    """Whether there is a value."""
    return np.array(value is not None)


def optional_get_element(call: Call, value: Value) -> Value:
    """The value, which must be there."""
    if value is None:
        raise call.fail("the optional has no value")
    return value


CONTROL: Table = {
    "ConcatFromSequence": concat_from_sequence,
    "If": if_,
    "Loop": loop,
    "Optional": optional,
    "OptionalGetElement": optional_get_element,
    "OptionalHasElement": optional_has_element,
    "Scan": {8: scan_of_batches, 9: scan},
    "SequenceAt": sequence_at,
    "SequenceConstruct": sequence_construct,
    "SequenceEmpty": sequence_empty,
    "SequenceErase": sequence_erase,
    "SequenceInsert": sequence_insert,
    "SequenceLength": sequence_length,
    "SequenceMap": sequence_map,
    "SplitToSequence": split_to_sequence,
}
