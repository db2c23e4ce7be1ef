"""Operators that choose elements by indices: gather, scatter, sort, search."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from modelc.onnx.call import Call
from modelc.onnx.operator import Table, parametric
from modelc.onnx.operators.shapes import whole_numbers
from modelc.onnx.values import Array


def _indices(call: Call, indices: Array, n: int) -> Array:
    """Indices counted from the front, all of them inside."""
    if indices.dtype.kind not in "iu":
        raise call.fail("indices must be integers", got=indices.dtype)
    places = indices.astype(np.int64)
    if places.size and (places.min() < -n or places.max() >= n):
        wrong = places[(places < -n) | (places >= n)][0]
        raise call.fail("an index is out of range", got=wrong, expected=f"{-n} to {n - 1}")
    return np.where(places < 0, places + n, places)


def gather(call: Call, x: Array, indices: Array) -> Array:
    """Slices of `x` along an axis."""
    axis = call.axis(call.attribute("axis", int, 0), x.ndim)
    call.room((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)
    return np.take(x, _indices(call, indices, x.shape[axis]), axis)


def gather_elements(call: Call, x: Array, indices: Array) -> Array:
    """For each index the element of `x` at it along an axis and at the index's own place elsewhere."""
    axis = call.axis(call.attribute("axis", int, 0), x.ndim)
    return x[_places(call, x, indices, axis)]


def _places(call: Call, x: Array, indices: Array, axis: int) -> tuple[Array, ...]:
    sizes = zip(indices.shape, x.shape, strict=True)
    if indices.ndim != x.ndim or any(have > n for d, (have, n) in enumerate(sizes) if d != axis):
        raise call.fail("the indices do not fit", got=list(indices.shape), expected=f"like {list(x.shape)}")
    places: list[Array] = list(np.indices(indices.shape, sparse=True))
    places[axis] = _indices(call, indices, x.shape[axis])
    return tuple(places)


def gather_nd(call: Call, x: Array, indices: Array) -> Array:
    """Slices of `x` at places given by the last dimension of `indices`."""
    batch = call.attribute("batch_dims", int, 0)
    depth = indices.shape[-1] if indices.ndim else 0
    if not 0 <= batch < indices.ndim or batch + depth > x.ndim or x.shape[:batch] != indices.shape[:batch]:
        raise call.fail("the indices do not fit", got=list(indices.shape), expected=f"for {list(x.shape)}")
    n = math.prod(x.shape[:batch])
    rows = x.reshape(n, *x.shape[batch:])
    places = indices.reshape(n, -1, depth)
    columns = [_indices(call, places[:, :, d], x.shape[batch + d]) for d in range(depth)]
    call.room((n, places.shape[1], *x.shape[batch + depth :]), x.dtype)
    chosen = rows[(np.arange(n)[:, None], *columns)]
    return chosen.reshape(*indices.shape[:-1], *x.shape[batch + depth :])


_COMBINE = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _scattered(call: Call, x: Array, places: tuple[Any, ...], updates: Array) -> Array:
    how = call.choice("reduction", "none", ("none", *_COMBINE))
    y = np.array(x)
    if how == "none":
        y[places] = updates
    else:
        _COMBINE[how].at(y, places, updates)
    return y


def scatter_elements(call: Call, x: Array, indices: Array, updates: Array) -> Array:
    """`x` with elements replaced, each at its index along an axis."""
    if updates.shape != indices.shape:
        raise call.fail("updates and indices differ", got=list(updates.shape), expected=list(indices.shape))
    axis = call.axis(call.attribute("axis", int, 0), x.ndim)
    return _scattered(call, x, np.broadcast_arrays(*_places(call, x, indices, axis)), updates)


def scatter_nd(call: Call, x: Array, indices: Array, updates: Array) -> Array:
    """`x` with slices replaced, at places given by the last dimension of `indices`."""
    depth = indices.shape[-1]
    if depth > x.ndim or updates.shape != (*indices.shape[:-1], *x.shape[depth:]):
        raise call.fail("updates and indices do not fit", got=f"{list(updates.shape)} and {list(indices.shape)}")
    return _scattered(call, x, tuple(_indices(call, indices[..., d], x.shape[d]) for d in range(depth)), updates)


def tensor_scatter(call: Call, x: Array, update: Array, starts: Array | None = None) -> Array:
    """A cache with new rows from each sequence's write index on."""
    axis = call.axis(call.attribute("axis", int, -2), x.ndim)
    mode = call.choice("mode", "linear", ("linear", "circular"))
    first = np.zeros(x.shape[0], np.int64) if starts is None else starts.astype(np.int64)
    count, n = update.shape[axis], x.shape[axis]
    if first.shape != x.shape[:1] or axis == 0:
        raise call.fail("the write indices do not fit", got=list(first.shape), expected=f"[{x.shape[0]}]")
    y = np.moveaxis(np.array(x), axis, 1)
    new = np.moveaxis(update, axis, 1)
    places = first[:, None] + np.arange(count)
    if mode == "circular":
        places %= n
    y[np.arange(x.shape[0])[:, None], _indices(call, places, n)] = new
    return np.moveaxis(y, 1, axis)


def compress(call: Call, x: Array, condition: Array) -> Array:
    """Slices along an axis where the condition holds."""
    axis = call.optional("axis", int)
    if axis is None:
        return np.compress(condition, x.reshape(-1))
    return np.compress(condition, x, call.axis(axis, x.ndim))


def non_zero(call: Call, x: Array) -> Array:
    """The indices of elements that are not 0, one column each."""
    return np.array(np.nonzero(np.atleast_1d(x)), np.int64)


def one_hot(call: Call, indices: Array, depth: Array, values: Array) -> Array:
    """A new dimension with the second value at the index and the first elsewhere."""
    n = int(depth.reshape(-1)[0])
    axis = call.axis(call.attribute("axis", int, -1), indices.ndim + 1)
    call.room((*indices.shape, max(n, 0)), values.dtype)
    places = indices.astype(np.int64)
    places = np.where(places < 0, places + n, places)
    hot = np.expand_dims(places, axis) == np.arange(n).reshape([-1 if d == axis else 1 for d in range(places.ndim + 1)])
    return np.where(hot, values[1], values[0])


def _extreme(largest: bool) -> Any:
    def run(call: Call, x: Array) -> Array:
        axis = call.axis(call.attribute("axis", int, 0), x.ndim)
        find = np.argmax if largest else np.argmin
        if call.attribute("select_last_index", int, 0):
            place = x.shape[axis] - 1 - find(np.flip(x, axis), axis)
        else:
            place = find(x, axis)
        return np.expand_dims(place, axis) if call.attribute("keepdims", int, 1) else np.asarray(place)

    return run


def top_k(call: Call, x: Array, count: Array) -> tuple[Array, Array]:
    """The k largest (or smallest) along an axis; of equal ones those with the lower index first."""
    axis = call.axis(call.attribute("axis", int, -1), x.ndim)
    k = whole_numbers(call, count, "k")[0] if count.size == 1 else -1
    if not 0 <= k <= x.shape[axis]:
        raise call.fail("a wrong k", got=k, expected=f"0 to {x.shape[axis]}")
    if call.attribute("largest", int, 1):
        # Ascending and stable from the back, then turned around: equal values keep their order.
        backwards = np.argsort(np.flip(x, axis), axis, kind="stable")
        order = x.shape[axis] - 1 - np.flip(backwards, axis)
    else:
        order = np.argsort(x, axis, kind="stable")
    places = np.take(order, np.arange(k), axis)
    return np.take_along_axis(x, places, axis), places.astype(np.int64)


def unique(call: Call, x: Array) -> tuple[Array, ...]:
    """Different values (or slices), where each was first, which one each is, how often it occurs."""
    axis = call.optional("axis", int)
    values, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not call.attribute("sorted", int, 1):
        order = np.argsort(first, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        values, first, counts, inverse = np.take(values, order, axis or 0), first[order], counts[order], rank[inverse]
    return values, *(each.astype(np.int64) for each in (first, inverse, counts))


def reverse_sequence(call: Call, x: Array, lengths: Array) -> Array:
    """Each sequence of a batch turned around up to its length."""
    batch, time = call.attribute("batch_axis", int, 1), call.attribute("time_axis", int, 0)
    if {batch, time} != {0, 1} or lengths.shape != (x.shape[batch],):
        raise call.fail("axes or lengths do not fit", got=f"{batch}, {time}, {list(lengths.shape)}")
    steps = np.arange(x.shape[time])
    until = lengths.astype(np.int64)[:, None]
    places = np.where(steps < until, until - 1 - steps, steps)
    rows = np.arange(x.shape[batch])[:, None]
    return x[rows, places] if batch == 0 else np.swapaxes(np.swapaxes(x, 0, 1)[rows, places], 0, 1)


def non_max_suppression(
    call: Call,
    boxes: Array,
    scores: Array,
    most: Array | None = None,
    overlap: Array | None = None,
    least: Array | None = None,
) -> Array:
    """Boxes by falling score, without those that overlap a better one of their class: (batch, class, box) each."""
    limit = 0 if most is None else int(most.reshape(-1)[0])
    most_overlap = 0.0 if overlap is None else float(overlap.reshape(-1)[0])
    least_score = None if least is None else float(least.reshape(-1)[0])
    corners = boxes.astype(np.float64)
    if call.attribute("center_point_box", int, 0):
        half = corners[..., 2:] / 2
        corners = np.concatenate([corners[..., :2] - half, corners[..., :2] + half], -1)
    low, high = np.minimum(corners[..., :2], corners[..., 2:]), np.maximum(corners[..., :2], corners[..., 2:])
    found = []
    for batch in range(scores.shape[0]):
        for kind in range(scores.shape[1]):
            row = scores[batch, kind]
            order = np.argsort(-row, kind="stable")
            if least_score is not None:
                order = order[row[order] > least_score]
            kept: list[int] = []
            while len(order) and len(kept) < limit:
                best, order = int(order[0]), order[1:]
                kept.append(best)
                shares = _overlaps(low[batch], high[batch], best, order)
                order = order[shares <= most_overlap]
            found += [(batch, kind, box) for box in kept]
    return np.array(found, np.int64).reshape(-1, 3)


def _overlaps(low: Array, high: Array, best: int, others: Array) -> Array:
    """Intersection over union of a box with others."""
    sides = np.minimum(high[best], high[others]) - np.maximum(low[best], low[others])
    common = np.prod(np.maximum(sides, 0.0), axis=-1)
    area = np.prod(high - low, axis=-1)
    union = area[best] + area[others] - common
    return np.asarray(np.where(union > 0, common / np.where(union > 0, union, 1.0), 0.0))


INDEXING: Table = {
    "ArgMax": _extreme(True),
    "ArgMin": _extreme(False),
    "Compress": compress,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "NonMaxSuppression": non_max_suppression,
    "NonZero": non_zero,
    "OneHot": one_hot,
    "ReverseSequence": reverse_sequence,
    "Scatter": scatter_elements,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "TensorScatter": tensor_scatter,
    "TopK": parametric(top_k),
    "Unique": unique,
}
