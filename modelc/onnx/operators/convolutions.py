"""Convolutions and what is like them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from modelc.onnx.call import Call
from modelc.onnx.lowering import contiguous, copy, is_f32
from modelc.onnx.machine import address
from modelc.onnx.operator import Lowered, Table
from modelc.onnx.operators.matrices import product
from modelc.onnx.operators.windows import Windows, spatial, windows
from modelc.onnx.values import Array, is_small_float

KERNEL_DIMS = 3


def conv(call: Call, x: Array, weight: Array, bias: Array | None = None) -> Any:
    """Convolution in 1 to 3 dimensions (more only in Python), grouped, dilated."""
    where = _windows(call, x, weight)
    if is_f32(x, weight, bias) and len(where.sizes) <= KERNEL_DIMS:
        return Lowered(_lowered(call, x, weight, bias, where))
    if is_small_float(x.dtype) or is_f32(x):
        wide = (x.astype(np.float32), weight.astype(np.float32), None if bias is None else bias.astype(np.float32))
        if len(where.sizes) <= KERNEL_DIMS:
            return _lowered(call, *wide, where).astype(x.dtype)
    return convolved(call, x, weight, bias, where)


def _windows(call: Call, x: Array, weight: Array) -> Windows:
    groups = call.attribute("group", int, 1)
    sizes = spatial(call, x)
    if weight.ndim != x.ndim or groups < 1 or weight.shape[0] % groups or weight.shape[1] * groups != x.shape[1]:
        got = f"{list(weight.shape)} in {groups} groups"
        raise call.fail("the weight does not fit", got=got, expected=f"one for {list(x.shape)}")
    kernel = call.integers("kernel_shape", weight.shape[2:], len(sizes))
    if tuple(kernel) != weight.shape[2:]:
        raise call.fail("kernel_shape and the weight differ", got=kernel, expected=list(weight.shape[2:]))
    return windows(call, sizes, kernel)


def _lowered(call: Call, x: Array, weight: Array, bias: Array | None, where: Windows) -> Array:
    """On the kernel: the image padded and split by strides, one product, the output rows cut to their length."""
    groups = call.attribute("group", int, 1)
    batch, n_out, channels = x.shape[0], weight.shape[0], weight.shape[1]
    y = call.empty((batch, n_out, *where.out))
    if not y.size:
        return y
    if bias is not None and bias.shape != (n_out,):
        raise call.fail("the bias does not fit", got=list(bias.shape), expected=[n_out])
    if channels == 0:
        filler = call.lasting(np.zeros((), np.float32)) if bias is None else bias.reshape(-1, *[1] * len(where.out))
        copy(call, filler, y)
        return y
    planes, plane = _planes(call, contiguous(call, x), where)
    offsets = _offsets(where, planes.shape[2], plane, channels)
    reach = [n - 1 for n in where.out]
    n = sum(r * step for r, step in zip(reach, _row_steps(plane), strict=True)) + 1
    whole = list(where.out[1:]) == plane[1:]  # no positions behind the ends of output rows
    raw = y if whole else call.empty((batch, n_out, n))
    bias_place = 0 if bias is None else address(contiguous(call, bias))
    rows, k = n_out // groups, len(offsets)
    floats = channels * planes.shape[2] * math.prod(plane)
    places = (address(contiguous(call, weight)), address(planes), address(raw))
    fields = (*places, rows, n, k, batch, groups, floats, call.numbers(offsets), bias_place)
    call.emit("array_conv", *fields, work=batch * n_out * n * k)
    if not whole:
        steps = [4 * step for step in _row_steps(plane)]
        strides = (4 * n_out * n, 4 * n, *steps)
        copy(call, np.lib.stride_tricks.as_strided(raw, y.shape, strides), y)
    return y


def _row_steps(plane: list[int]) -> list[int]:
    """Floats from one position to the next along each dimension of a plane."""
    return [math.prod(plane[d + 1 :]) for d in range(len(plane))]


def _planes(call: Call, x: Array, where: Windows) -> tuple[Array, list[int]]:
    """The padded image as (batch, channels, remainders, *plane), and the sizes of a plane.

    A remainder is one of the coordinates modulo the strides; elements of a plane are a stride apart.
    """
    plane = [
        (k - 1) * d // s + n for k, d, s, n in zip(where.kernel, where.dilations, where.strides, where.out, strict=True)
    ]
    n_remainders = math.prod(where.strides)
    if n_remainders == 1 and not any((*where.before, *where.after)) and list(x.shape[2:]) == plane:
        return x.reshape(*x.shape[:2], 1, *plane), plane
    planes = call.empty((*x.shape[:2], n_remainders, *plane))
    copy(call, call.lasting(np.zeros((), np.float32)), planes)
    for number, remainder in enumerate(np.ndindex(*where.strides)):
        source, target = [], []
        for d, (r, s) in enumerate(zip(remainder, where.strides, strict=True)):
            skipped = max(-(-(where.before[d] - r) // s), 0)  # elements of the plane that lie in the padding
            first = skipped * s + r - where.before[d]
            count = max(min(plane[d] - skipped, -(-(where.sizes[d] - first) // s)), 0)
            source.append(slice(first, first + (count - 1) * s + 1 if count else first, s))
            target.append(slice(skipped, skipped + count))
        inside: Any = (slice(None), slice(None), *source)
        outside: Any = (slice(None), slice(None), number, *target)
        copy(call, x[inside], planes[outside])
    return planes, plane


def _offsets(where: Windows, n_remainders: int, plane: list[int], channels: int) -> Array:
    """Where each element of the kernel begins in the planes of a group, int64 (channels * kernel,)."""
    size = math.prod(plane)
    places = []
    for element in where.places():
        number = at = 0
        steps = zip(element, where.dilations, where.strides, _row_steps(plane), strict=True)
        for e, d, s, step in steps:
            number = number * s + e * d % s
            at += e * d // s * step
        places.append(number * size + at)
    by_channel = np.arange(channels, dtype=np.int64) * (n_remainders * size)
    return (by_channel[:, None] + np.array(places, np.int64)).reshape(-1)


def convolved(call: Call, x: Array, weight: Array, bias: Array | None, where: Windows) -> Array:
    """The same in any type and number of dimensions, in Python: one product for each element of a window."""
    groups = call.attribute("group", int, 1)
    batch, n_out = x.shape[0], weight.shape[0]
    padding = [(0, 0), (0, 0), *zip(where.before, where.after, strict=True)]
    call.room([n + a + b for n, (a, b) in zip(x.shape, padding, strict=True)], x.dtype)
    padded = np.pad(x, padding)
    grouped = padded.reshape(batch, groups, -1, *padded.shape[2:])
    weights = weight.reshape(groups, n_out // groups, *weight.shape[1:])
    positions = math.prod(where.out)
    y = np.zeros((batch, groups, n_out // groups, positions), x.dtype)
    for i, place in enumerate(where.places()):
        columns = grouped[where.part(place)].reshape(batch, groups, -1, positions)
        y = y + product(call, weights.reshape(*weights.shape[:3], -1)[..., i][None], columns)
    y = y.reshape(batch, n_out, *where.out)
    return y if bias is None else y + bias.reshape(-1, *[1] * len(where.out))


def conv_transpose(call: Call, x: Array, weight: Array, bias: Array | None = None) -> Any:
    """The gradient of a convolution: each input element adds its weights to a window of the output."""
    groups = call.attribute("group", int, 1)
    sizes = spatial(call, x)
    n = len(sizes)
    if weight.ndim != x.ndim or groups < 1 or x.shape[1] % groups or weight.shape[0] != x.shape[1]:
        raise call.fail("the weight does not fit", got=list(weight.shape), expected=f"one for {list(x.shape)}")
    kernel = call.integers("kernel_shape", weight.shape[2:], n)
    if tuple(kernel) != weight.shape[2:]:
        raise call.fail("kernel_shape and the weight differ", got=kernel, expected=list(weight.shape[2:]))
    strides, dilations, before, out, full = _transposed(call, sizes, kernel)
    batch, channels, per_group = x.shape[0], x.shape[1] // groups, weight.shape[1]
    grouped = x.reshape(batch, groups, channels, -1)
    weights = weight.reshape(groups, channels, -1)
    call.room((batch, groups, weights.shape[2], grouped.shape[3]), x.dtype)
    columns = product(call, np.swapaxes(weights, 1, 2)[None], grouped)
    columns = columns.reshape(batch, groups * per_group, *kernel, *sizes)
    call.room((batch, groups * per_group, *full), x.dtype)
    y = np.zeros((batch, groups * per_group, *full), x.dtype)
    for place in np.ndindex(*kernel):
        part = tuple(
            slice(p * d, p * d + (size - 1) * s + 1, s)
            for p, d, size, s in zip(place, dilations, sizes, strides, strict=True)
        )
        y[(slice(None), slice(None), *part)] += columns[(slice(None), slice(None), *place)]
    y = y[(slice(None), slice(None), *(slice(b, b + o) for b, o in zip(before, out, strict=True)))]
    return y if bias is None else y + bias.reshape(-1, *[1] * n)


def _transposed(call: Call, sizes: Any, kernel: list[int]) -> tuple[list[int], ...]:
    """Strides, dilations, what is cut off in front, output sizes, sizes before anything is cut off."""
    n = len(sizes)
    strides, dilations = call.integers("strides", [1] * n, n), call.integers("dilations", [1] * n, n)
    extra = call.integers("output_padding", [0] * n, n)
    pads = call.integers("pads", [0] * (2 * n), 2 * n)
    automatic = call.choice("auto_pad", "NOTSET", ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"))
    if min([*strides, *dilations]) < 1 or min([*extra, *pads]) < 0:
        raise call.fail("strides, dilations or pads are out of range", got=f"{strides} {dilations} {pads}")
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    natural = [s * (size - 1) + o + r for s, size, o, r in zip(strides, sizes, extra, reach, strict=True)]
    before, after = pads[:n], pads[n:]
    if automatic == "VALID":
        before, after = [0] * n, [0] * n
    wanted = call.optional("output_shape", list)
    if wanted is None and automatic.startswith("SAME"):
        wanted = [size * s for size, s in zip(sizes, strides, strict=True)]
    if wanted is not None:
        wanted = wanted[-n:]
        total = [max(a - b, 0) for a, b in zip(natural, wanted, strict=True)]
        before = [t // 2 if automatic != "SAME_LOWER" else t - t // 2 for t in total]
        out = list(wanted)
    else:
        out = [a - b - c for a, b, c in zip(natural, before, after, strict=True)]
    if min(out) < 0:
        raise call.fail("the padding is larger than the output", got=pads)
    full = [max(a, b + o) for a, b, o in zip(natural, before, out, strict=True)]
    return strides, dilations, before, out, full


def deform_conv(
    call: Call, x: Array, weight: Array, offset: Array, bias: Array | None = None, mask: Array | None = None
) -> Array:
    """Convolution whose windows' elements are moved by learned offsets, between pixels bilinearly."""
    sizes = spatial(call, x)
    if len(sizes) != 2:
        raise call.unsupported("another number of spatial dimensions than 2", got=len(sizes))
    where = windows(call, sizes, call.integers("kernel_shape", weight.shape[2:], 2))
    groups, fields = call.attribute("group", int, 1), call.attribute("offset_group", int, 1)
    batch, channels = x.shape[:2]
    elements = math.prod(where.kernel)
    moved = offset.reshape(batch, fields, elements, 2, *where.out).astype(np.float64)
    shares = None if mask is None else mask.reshape(batch, fields, elements, *where.out).astype(np.float64)
    grid = np.indices(where.out)
    columns = np.empty((batch, channels, elements, *where.out))
    for e, place in enumerate(where.places()):
        base = [grid[d] * where.strides[d] + place[d] * where.dilations[d] - where.before[d] for d in range(2)]
        for b in range(batch):
            for f in range(fields):
                part = slice(f * channels // fields, (f + 1) * channels // fields)
                values = _between(
                    x[b, part].astype(np.float64), base[0] + moved[b, f, e, 0], base[1] + moved[b, f, e, 1]
                )
                columns[b, part, e] = values if shares is None else values * shares[b, f, e]
    n_out = weight.shape[0]
    left = weight.reshape(groups, n_out // groups, -1).astype(np.float64)
    right = columns.reshape(batch, groups, -1, math.prod(where.out))
    y = product(call, left[None], right).reshape(batch, n_out, *where.out)
    if bias is not None:
        y = y + bias.reshape(-1, 1, 1)
    return y.astype(x.dtype)


def _between(images: Array, h: Array, w: Array) -> Array:
    """Bilinear values of (channels, height, width) at real places; 0 outside."""
    height, width = images.shape[1:]
    top, left = np.floor(h), np.floor(w)
    result = np.zeros((len(images), *h.shape))
    for row, share_h in ((top, 1 - (h - top)), (top + 1, h - top)):
        for column, share_w in ((left, 1 - (w - left)), (left + 1, w - left)):
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            rows, columns = np.where(inside, row, 0).astype(np.int64), np.where(inside, column, 0).astype(np.int64)
            result += np.where(inside, images[:, rows, columns], 0.0) * share_h * share_w
    return result


def columns_to_image(call: Call, x: Array, image: Array, block: Array) -> Array:
    """Adds blocks that overlap to an image: the inverse of taking patches."""
    sizes, kernel = [int(v) for v in image], [int(v) for v in block]
    where = windows(call, sizes, kernel)
    batch = x.shape[0]
    channels = x.shape[1] // math.prod(kernel)
    padded = [n + a + b for n, a, b in zip(sizes, where.before, where.after, strict=True)]
    call.room((batch, channels, *padded), x.dtype)
    y = np.zeros((batch, channels, *padded), x.dtype)
    columns = x.reshape(batch, channels, -1, *where.out)
    for i, place in enumerate(where.places()):
        y[where.part(place)] += columns[:, :, i]
    inside: Any = (..., *(slice(a, a + n) for a, n in zip(where.before, sizes, strict=True)))
    return y[inside]


CONVOLUTIONS: Table = {
    "Col2Im": columns_to_image,
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "DeformConv": deform_conv,
}
