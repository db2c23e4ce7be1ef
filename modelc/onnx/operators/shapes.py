"""Operators that change shapes and leave elements as they are: most are views of their input."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from modelc.onnx.call import Call
from modelc.onnx.lowering import contiguous, copy
from modelc.onnx.operator import Lowered, Operator, Table, parametric
from modelc.onnx.values import Array, Value

MAX_DIMS = 32  # NumPy allows 64; a limit keeps products of broadcast shapes sane


def whole_numbers(call: Call, values: Array | None, what: str) -> list[int]:
    """A tensor of integers as a list."""
    if values is None or values.dtype.kind not in "iu":
        raise call.fail(f"{what} must be integers")
    return [int(value) for value in values.reshape(-1)]


def shape(call: Call, x: Array) -> Array:
    """Sizes `start` to `end`."""
    start, end = call.attribute("start", int, 0), call.optional("end", int)
    n = x.ndim
    first = min(max(start + n if start < 0 else start, 0), n)
    last = n if end is None else min(max(end + n if end < 0 else end, 0), n)
    return np.array(x.shape[first:last], np.int64)


def size(call: Call, x: Array) -> Array:
    """The number of elements."""
    return np.array(x.size, np.int64)


def reshape(call: Call, x: Array, target: Array) -> Any:
    """Other sizes; 0 keeps a size (unless `allowzero`), -1 is what is left."""
    sizes = whole_numbers(call, target, "the shape")
    if len(sizes) > MAX_DIMS:
        raise call.fail("too many dimensions", got=len(sizes), expected=f"at most {MAX_DIMS}")
    if not call.attribute("allowzero", int, 0):
        if any(each == 0 and i >= x.ndim for i, each in enumerate(sizes)):
            raise call.fail("a size of 0 stands for one that the input does not have", got=sizes)
        sizes = [x.shape[i] if each == 0 else each for i, each in enumerate(sizes)]
    return reshaped(call, x, sizes)


def reshaped(call: Call, x: Array, sizes: Sequence[int]) -> Any:
    """A view of `x` with other sizes, or of a contiguous copy."""
    known = math.prod(each for each in sizes if each != -1)
    fits = x.size == known if -1 not in sizes else known > 0 and x.size % known == 0
    if any(each < -1 for each in sizes) or list(sizes).count(-1) > 1 or not fits:
        raise call.fail("the shape does not fit", got=list(sizes), expected=f"{x.size} elements {list(x.shape)}")
    if x.dtype.hasobject or x.flags.c_contiguous:
        return x.reshape(sizes)
    return Lowered(contiguous(call, x).reshape(sizes))


def flatten(call: Call, x: Array) -> Any:
    """Two dimensions: those before `axis`, and the rest."""
    axis = call.attribute("axis", int, 1)
    if not -x.ndim <= axis <= x.ndim:
        raise call.fail("no such axis", got=axis)
    axis += x.ndim if axis < 0 else 0
    return reshaped(call, x, [math.prod(x.shape[:axis]), math.prod(x.shape[axis:])])


def squeeze(call: Call, x: Array, axes: Array | None = None) -> Array:
    """Without dimensions of size 1."""
    return _squeezed(call, x, None if axes is None else whole_numbers(call, axes, "axes"))


def squeeze_by_attribute(call: Call, x: Array) -> Array:
    """Without dimensions of size 1, named by an attribute."""
    return _squeezed(call, x, call.integers("axes") if "axes" in call.node.attributes else None)


def _squeezed(call: Call, x: Array, axes: list[int] | None) -> Array:
    chosen = {d for d, n in enumerate(x.shape) if n == 1} if axes is None else {call.axis(a, x.ndim) for a in axes}
    if any(x.shape[d] != 1 for d in chosen):
        raise call.fail("a dimension is not of size 1", got=list(x.shape), expected=f"1 at {sorted(chosen)}")
    return np.squeeze(x, tuple(chosen))


def unsqueeze(call: Call, x: Array, axes: Array) -> Array:
    """With new dimensions of size 1."""
    return _unsqueezed(call, x, whole_numbers(call, axes, "axes"))


def unsqueeze_by_attribute(call: Call, x: Array) -> Array:
    """With new dimensions of size 1, named by an attribute."""
    return _unsqueezed(call, x, call.integers("axes"))


def _unsqueezed(call: Call, x: Array, axes: list[int]) -> Array:
    n = x.ndim + len(axes)
    if n > MAX_DIMS:
        raise call.fail("too many dimensions", got=n, expected=f"at most {MAX_DIMS}")
    places = {call.axis(axis, n) for axis in axes}
    if len(places) != len(axes):
        raise call.fail("an axis is named twice", got=axes)
    return np.expand_dims(x, tuple(places))


def transpose(call: Call, x: Array) -> Array:
    """Dimensions in another order."""
    order = call.integers("perm", range(x.ndim)[::-1])
    if sorted(order) != list(range(x.ndim)):
        raise call.fail("the permutation does not fit", got=order, expected=f"an order of {x.ndim} dimensions")
    return np.transpose(x, order)


def expand(call: Call, x: Array, target: Array) -> Array:
    """Repeated along dimensions of size 1; a view."""
    sizes = whole_numbers(call, target, "the shape")
    if len(sizes) > MAX_DIMS or any(each < 0 for each in sizes):
        raise call.fail("a wrong shape", got=sizes)
    joint = np.broadcast_shapes(x.shape, tuple(sizes))
    call.room(joint, x.dtype)
    return np.broadcast_to(x, joint)


def identity(call: Call, x: Value) -> Value:
    """X itself."""
    return x


def tile(call: Call, x: Array, repeats: Array) -> Any:
    """Whole copies side by side."""
    counts = whole_numbers(call, repeats, "repeats")
    if len(counts) != x.ndim or any(count < 0 for count in counts):
        raise call.fail("the repeats do not fit", got=counts, expected=f"{x.ndim} numbers")
    target = [n * count for n, count in zip(x.shape, counts, strict=True)]
    call.room(target, x.dtype)
    if x.dtype.hasobject:
        return np.tile(x, counts)
    y = call.empty(target, x.dtype)
    pairs = [each for n, count in zip(x.shape, counts, strict=True) for each in (count, n)]
    if y.size:
        source = x.reshape([each for n in x.shape for each in (1, n)])
        copy(call, source, y.reshape(pairs))
    return Lowered(y)


def concat(call: Call, *arrays: Array) -> Any:
    """Arrays one after another along `axis`."""
    first = arrays[0]
    axis = call.axis(call.attribute("axis", int), first.ndim)
    rest = [(*x.shape[:axis], *x.shape[axis + 1 :]) for x in arrays]
    if any(x.ndim != first.ndim or x.dtype != first.dtype for x in arrays) or len(set(rest)) > 1:
        raise call.fail("the inputs do not fit together", got=", ".join(str(list(x.shape)) for x in arrays))
    sizes = list(first.shape)
    sizes[axis] = sum(x.shape[axis] for x in arrays)
    if first.dtype.hasobject:
        return np.concatenate(arrays, axis)
    y = call.empty(sizes, first.dtype)
    start = 0
    for x in arrays:
        part = (slice(None),) * axis + (slice(start, start + x.shape[axis]),)
        copy(call, x, y[part])
        start += x.shape[axis]
    return Lowered(y)


def split(call: Call, x: Array, sizes: Array | None = None) -> Any:
    """Parts along `axis`, of given sizes or as equal as possible."""
    return _split(call, x, None if sizes is None else whole_numbers(call, sizes, "the sizes"))


def split_by_attribute(call: Call, x: Array) -> Any:
    """Parts along `axis`, of sizes given by an attribute."""
    return _split(call, x, call.integers("split") if "split" in call.node.attributes else None)


def _split(call: Call, x: Array, sizes: list[int] | None) -> Any:
    axis = call.axis(call.attribute("axis", int, 0), x.ndim)
    total = x.shape[axis]
    if sizes is None:
        parts = call.attribute("num_outputs", int, call.n_outputs)
        if parts < 1 or parts > max(total, call.n_outputs):
            raise call.fail("a wrong number of parts", got=parts)
        each = -(-total // parts)
        sizes = [min(each, max(total - i * each, 0)) for i in range(parts)]
    if sum(sizes) != total or any(n < 0 for n in sizes):
        raise call.fail("the sizes do not fit", got=sizes, expected=f"{total} in all")
    ends = np.cumsum([0, *sizes])
    return tuple(x[(slice(None),) * axis + (slice(int(a), int(b)),)] for a, b in pairwise(ends))


def slice_by_inputs(
    call: Call, x: Array, starts: Array, ends: Array, axes: Array | None = None, steps: Array | None = None
) -> Array:
    """Elements start, start + step, ... before end, along some axes."""
    first, last = whole_numbers(call, starts, "starts"), whole_numbers(call, ends, "ends")
    along = list(range(len(first))) if axes is None else whole_numbers(call, axes, "axes")
    by = [1] * len(first) if steps is None else whole_numbers(call, steps, "steps")
    return _sliced(call, x, first, last, along, by)


def slice_by_attributes(call: Call, x: Array) -> Array:
    """As above, with everything in attributes and steps of 1."""
    first, last = call.integers("starts"), call.integers("ends")
    return _sliced(call, x, first, last, call.integers("axes", range(len(first))), [1] * len(first))


def _sliced(call: Call, x: Array, starts: list[int], ends: list[int], axes: list[int], steps: list[int]) -> Array:
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise call.fail("starts, ends, axes and steps do not fit together", got=f"{starts} {ends} {axes} {steps}")
    parts = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        d = call.axis(axis, x.ndim)
        n = x.shape[d]
        if step > 0:
            parts[d] = slice(_clamped(start, n, 0, n), _clamped(end, n, 0, n), step)
        else:
            stop = _clamped(end, n, -1, n - 1)
            parts[d] = slice(_clamped(start, n, 0, n - 1), None if stop < 0 else stop, step)
    return x[tuple(parts)]


def _clamped(place: int, n: int, least: int, most: int) -> int:
    return max(least, min(place + n if place < 0 else place, most))


def constant_of_shape(call: Call, target: Array) -> Array:
    """One value everywhere."""
    sizes = whole_numbers(call, target, "the shape")
    constant = call.node.attributes.get("value")
    value = np.zeros(1, np.float32) if constant is None else call.constant_value(constant)
    call.room(sizes, value.dtype)
    if len(sizes) > MAX_DIMS:
        raise call.fail("too many dimensions", got=len(sizes), expected=f"at most {MAX_DIMS}")
    return np.full(sizes, value.reshape(-1)[0], value.dtype)


def constant(call: Call) -> Array:
    """The value in an attribute."""
    for name, make in (
        ("value", call.constant_value),
        ("value_float", lambda v: np.array(v, np.float32)),
        ("value_floats", lambda v: np.array(v, np.float32)),
        ("value_int", lambda v: np.array(v, np.int64)),
        ("value_ints", lambda v: np.array(v, np.int64)),
        ("value_string", lambda v: np.array(v, object)),
        ("value_strings", lambda v: np.array(v, object)),
    ):
        if name in call.node.attributes:
            result: Array = make(call.node.attributes[name])
            return result
    raise call.unsupported("a constant of this form", got=", ".join(call.node.attributes) or "no value")


def depth_to_space(call: Call, x: Array) -> Any:
    """Channels to blocks of pixels."""
    block = call.attribute("blocksize", int)
    n, c, h, w = x.shape
    if block < 1 or c % (block * block):
        raise call.fail("the channels are not whole blocks", got=c, expected=f"a multiple of {block * block}")
    if call.choice("mode", "DCR", ("DCR", "CRD")) == "DCR":
        y = x.reshape(n, block, block, c // block**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        y = x.reshape(n, c // block**2, block, block, h, w).transpose(0, 1, 4, 2, 5, 3)
    return Lowered(contiguous(call, y).reshape(n, c // block**2, h * block, w * block))


def space_to_depth(call: Call, x: Array) -> Any:
    """Blocks of pixels to channels."""
    block = call.attribute("blocksize", int)
    n, c, h, w = x.shape
    if block < 1 or h % block or w % block:
        raise call.fail("the image is not whole blocks", got=[h, w], expected=f"multiples of {block}")
    order = (0, 3, 5, 1, 2, 4) if call.choice("mode", "DCR", ("DCR", "CRD")) == "DCR" else (0, 1, 3, 5, 2, 4)
    y = x.reshape(n, c, h // block, block, w // block, block).transpose(order)
    return Lowered(contiguous(call, y).reshape(n, c * block * block, h // block, w // block))


def trilu(call: Call, x: Array, diagonal: Array | None = None) -> Array:
    """The upper or lower triangle, 0 elsewhere."""
    k = 0 if diagonal is None else int(diagonal.reshape(()))
    rows, columns = x.shape[-2:]
    k = max(-rows - 1, min(k, columns + 1))
    upper = bool(call.attribute("upper", int, 1))
    inside = np.arange(columns) - np.arange(rows)[:, None]
    return np.where(inside >= k if upper else inside <= k, x, np.zeros((), x.dtype))


def center_crop_pad(call: Call, x: Array, target: Array) -> Array:
    """The middle of an array, with zeros around it where it is too small."""
    sizes = whole_numbers(call, target, "the shape")
    axes = [call.axis(axis, x.ndim) for axis in call.integers("axes", range(x.ndim))]
    if len(axes) != len(sizes):
        raise call.fail("axes and shape do not fit together", got=f"{axes} {sizes}")
    wanted = list(x.shape)
    for axis, n in zip(axes, sizes, strict=True):
        wanted[axis] = n
    call.room(wanted, x.dtype)
    y = np.zeros(wanted, x.dtype)
    source, place = [slice(None)] * x.ndim, [slice(None)] * x.ndim
    for axis, n in zip(axes, sizes, strict=True):
        have = x.shape[axis]
        common = min(have, n)
        source[axis] = slice((have - common) // 2, (have - common) // 2 + common)
        place[axis] = slice((n - common) // 2, (n - common) // 2 + common)
    y[tuple(place)] = x[tuple(source)]
    return y


SHAPES: Table = {
    "CenterCropPad": center_crop_pad,
    "Concat": concat,
    "Constant": constant,
    "ConstantOfShape": constant_of_shape,
    "DepthToSpace": depth_to_space,
    "Expand": parametric(expand),
    "Flatten": Operator(flatten, 1),
    "Identity": Operator(identity, 1),
    "Reshape": parametric(reshape),
    "Shape": Operator(shape, of_shape=True),
    "Size": Operator(size, of_shape=True),
    "Slice": {1: Operator(slice_by_attributes, 1), 10: parametric(slice_by_inputs)},
    "SpaceToDepth": space_to_depth,
    "Split": {2: Operator(split_by_attribute, 1), 13: parametric(split)},
    "Squeeze": {1: Operator(squeeze_by_attribute, 1), 13: parametric(squeeze)},
    "Tile": parametric(tile),
    "Transpose": Operator(transpose, 1),
    "Trilu": trilu,
    "Unsqueeze": {1: Operator(unsqueeze_by_attribute, 1), 13: parametric(unsqueeze)},
}
