"""Sampling images at real places: grids, regions, affine maps."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from modelc.onnx.call import Call
from modelc.onnx.operator import Table, parametric
from modelc.onnx.operators.resizing import cubic
from modelc.onnx.operators.shapes import whole_numbers
from modelc.onnx.values import Array


def grid_sample(call: Call, x: Array, grid: Array) -> Array:
    """Values at places given in [-1, 1] for each dimension, the last dimension first."""
    mode = call.choice("mode", "linear", ("linear", "bilinear", "nearest", "cubic", "bicubic")).removeprefix("bi")
    padding = call.choice("padding_mode", "zeros", ("zeros", "border", "reflection"))
    corners = bool(call.attribute("align_corners", int, 0))
    sizes = x.shape[2:]
    if grid.ndim != x.ndim or grid.shape[0] != x.shape[0] or grid.shape[-1] != len(sizes):
        raise call.fail("the grid does not fit", got=list(grid.shape), expected=f"one for {list(x.shape)}")
    call.room((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    y = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for b in range(x.shape[0]):
        image = x[b].astype(np.float64)
        places = []
        for d, n in enumerate(sizes):
            g = grid[b, ..., len(sizes) - 1 - d].astype(np.float64)
            places.append((g + 1) / 2 * (n - 1) if corners else ((g + 1) * n - 1) / 2)
        y[b] = _sampled(image, places, mode, padding, corners)
    return y.astype(x.dtype)


def _sampled(image: Array, places: list[Array], mode: str, padding: str, corners: bool) -> Array:
    sizes = image.shape[1:]
    offsets: tuple[int, ...]
    if mode == "nearest":
        places = [np.rint(_inside(p, n, padding, corners)) for p, n in zip(places, sizes, strict=True)]
        return _at(image, places, padding, corners)
    if mode == "linear":
        places = [_inside(p, n, padding, corners) for p, n in zip(places, sizes, strict=True)]
        offsets, weigh = (0, 1), _linear
    else:
        offsets, weigh = (-1, 0, 1, 2), _cubic
    floors = [np.floor(p) for p in places]
    y = np.zeros((len(image), *places[0].shape))
    for shifts in product(offsets, repeat=len(places)):
        at = [f + s for f, s in zip(floors, shifts, strict=True)]
        weight: Any = 1.0
        for place, p in zip(at, places, strict=True):
            weight = weight * weigh(place - p)
        y = y + _at(image, at, padding, corners) * weight
    return y


def _linear(t: Array) -> Array:
    return np.maximum(1 - np.abs(t), 0)


def _cubic(t: Array) -> Array:
    return cubic(np.abs(t))


def _inside(place: Array, n: int, padding: str, corners: bool) -> Array:
    if padding == "border":
        return np.clip(place, 0, n - 1)
    if padding == "reflection":
        return _reflected(place, n, corners)
    return place


def _reflected(place: Array, n: int, corners: bool) -> Array:
    low, high = (0.0, n - 1.0) if corners else (-0.5, n - 0.5)
    span = high - low
    if span <= 0:
        return np.zeros_like(place)
    t = np.mod(place - low, 2 * span)
    return np.clip(low + np.where(t > span, 2 * span - t, t), 0, n - 1)


def _at(image: Array, places: list[Array], padding: str, corners: bool) -> Array:
    """Elements at whole places, by the rule for those outside."""
    valid: Any = True
    index = []
    for place, n in zip(places, image.shape[1:], strict=True):
        if padding == "zeros":
            valid = valid & (place >= 0) & (place < n)
        moved = np.clip(_inside(place, n, padding, corners), 0, n - 1)
        index.append(np.where(np.isfinite(moved), moved, 0).astype(np.int64))
    every: Any = (slice(None), *index)
    return np.where(valid, image[every], 0.0)


def affine_grid(call: Call, theta: Array, size: Array) -> Array:
    """The places that an affine map takes a regular grid to."""
    corners = bool(call.attribute("align_corners", int, 0))
    sizes = whole_numbers(call, size, "the size")[2:]
    n = len(sizes)
    if theta.shape[1:] != (n, n + 1):
        raise call.fail("theta does not fit", got=list(theta.shape), expected=["batch", n, n + 1])
    call.room((len(theta), *sizes, n), theta.dtype)
    steps = [np.linspace(-1, 1, count) if corners else (2 * np.arange(count) + 1) / count - 1 for count in sizes]
    grid = np.stack([*np.meshgrid(*steps, indexing="ij")][::-1], axis=-1)  # x before y before z
    y = np.zeros((len(theta), *sizes, n))
    wide = theta.astype(np.float64)
    for row in range(n):
        term = wide[:, row, n].reshape(-1, *[1] * n)
        for column in range(n):
            term = term + grid[..., column] * wide[:, row, column].reshape(-1, *[1] * n)
        y[..., row] = term
    return y.astype(theta.dtype)


def roi_align(call: Call, x: Array, regions: Array, batches: Array) -> Array:
    """Means (or maxima) of bilinear samples in a grid of bins for each region."""
    mode = call.choice("mode", "avg", ("avg", "max"))
    default = "half_pixel" if call.opset >= 16 else "output_half_pixel"
    transform = call.choice("coordinate_transformation_mode", default, ("half_pixel", "output_half_pixel"))
    rows, columns = call.attribute("output_height", int, 1), call.attribute("output_width", int, 1)
    ratio, scale = call.attribute("sampling_ratio", int, 0), call.attribute("spatial_scale", float, 1.0)
    if rows < 1 or columns < 1 or ratio < 0:
        raise call.fail("sizes are out of range", got=f"{rows}, {columns}, {ratio}")
    call.room((len(regions), x.shape[1], rows, columns), x.dtype)
    half = 0.5 if transform == "half_pixel" else 0.0
    y = np.zeros((len(regions), x.shape[1], rows, columns))
    for r, region in enumerate(regions.astype(np.float64)):
        left, top, right, bottom = (v * scale - half for v in region)
        width, height = right - left, bottom - top
        if not half:
            width, height = max(width, 1.0), max(height, 1.0)
        count_h = ratio or max(math.ceil(height / rows), 1)
        count_w = ratio or max(math.ceil(width / columns), 1)
        call.room((rows * count_h, columns * count_w, x.shape[1]), np.float64)
        h = top + (np.arange(rows * count_h) + 0.5) * height / rows / count_h
        w = left + (np.arange(columns * count_w) + 0.5) * width / columns / count_w
        samples = _samples(x[int(batches[r])].astype(np.float64), h, w, mode == "max")
        bins = samples.reshape(-1, rows, count_h, columns, count_w)
        if mode == "max":
            y[r] = bins.max(axis=(2, 4))
        else:
            summed = sum(bins[:, :, i, :, j] for i in range(count_h) for j in range(count_w))
            y[r] = summed / (count_h * count_w)
    return y.astype(x.dtype)


def _samples(image: Array, h: Array, w: Array, largest: bool) -> Array:
    """Bilinear values (or the largest of the four weighted neighbours) on a grid, 0 more than a pixel outside."""
    n_h, n_w = image.shape[1:]
    valid = ((h >= -1) & (h <= n_h))[:, None] & ((w >= -1) & (w <= n_w))
    h, w = np.clip(h, 0, n_h - 1), np.clip(w, 0, n_w - 1)
    top, left = np.floor(h).astype(np.int64), np.floor(w).astype(np.int64)
    below, beside = np.minimum(top + 1, n_h - 1), np.minimum(left + 1, n_w - 1)
    share_h, share_w = (h - top)[:, None], w - left
    parts = [
        image[:, top][:, :, left] * (1 - share_h) * (1 - share_w),
        image[:, top][:, :, beside] * (1 - share_h) * share_w,
        image[:, below][:, :, left] * share_h * (1 - share_w),
        image[:, below][:, :, beside] * share_h * share_w,
    ]
    value = np.maximum.reduce(parts) if largest else parts[0] + parts[1] + parts[2] + parts[3]
    return np.where(valid, value, 0.0)


IMAGES: Table = {
    "AffineGrid": parametric(affine_grid),
    "GridSample": grid_sample,
    "RoiAlign": roi_align,
}
