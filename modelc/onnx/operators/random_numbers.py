"""Random numbers, from a counter and a seed: the same for the same seed on every machine."""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np

from modelc.onnx import functions
from modelc.onnx.call import Call
from modelc.onnx.operator import Operator, Table
from modelc.onnx.operators.casts import element_type
from modelc.onnx.values import Array

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def uniform(call: Call, shape: Sequence[int], stream: int = 0) -> Array:
    """Numbers in [0, 1), float64; from the attribute `seed`, without it others every time.

    Source: SplitMix64 on consecutive counters.
    """
    call.room(shape, np.float64)
    seed = call.node.attributes.get("seed")  # an integer of Dropout, a float of the others
    start = secrets.randbits(64)
    if seed is not None:
        start = int(np.float32(call.attribute("seed", type(seed))).view(np.uint32)) << 24
    n = math.prod(shape)
    counters = np.arange(1 + stream * n, 1 + (stream + 1) * n, dtype=np.uint64)
    z = np.uint64(start & 0xFFFFFFFFFFFFFFFF) + counters * _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return ((z >> np.uint64(11)).astype(np.float64) * 2.0**-53).reshape(shape)


def _normal(call: Call, shape: Sequence[int]) -> Array:
    """Standard normal numbers. Source: Box and Muller."""
    radius = np.sqrt(-2.0 * functions.log(1.0 - uniform(call, shape)))
    return radius * functions.cos(2.0 * np.pi * uniform(call, shape, 1))


def _dtype(call: Call, like: Array | None) -> np.dtype[Any]:
    number = call.optional("dtype", int)
    if number is not None:
        return element_type(call, number)
    return np.dtype(np.float32) if like is None else like.dtype


def _shape(call: Call, like: Array | None) -> Sequence[int]:
    return call.integers("shape") if like is None else like.shape


def random_normal(call: Call, like: Array | None = None) -> Array:
    """Normal numbers."""
    mean, scale = call.attribute("mean", float, 0.0), call.attribute("scale", float, 1.0)
    return (mean + scale * _normal(call, _shape(call, like))).astype(_dtype(call, like))


def random_uniform(call: Call, like: Array | None = None) -> Array:
    """Numbers between `low` and `high`."""
    low, high = call.attribute("low", float, 0.0), call.attribute("high", float, 1.0)
    return (low + (high - low) * uniform(call, _shape(call, like))).astype(_dtype(call, like))


def bernoulli(call: Call, x: Array) -> Array:
    """1 with probability x, else 0."""
    return (uniform(call, x.shape) < x).astype(_dtype(call, x))


def multinomial(call: Call, x: Array) -> Array:
    """Classes drawn from rows of unnormalised log-probabilities."""
    number = call.attribute("dtype", int, 6)
    size = call.attribute("sample_size", int, 1)
    if x.ndim != 2 or not x.shape[1]:
        raise call.fail("not rows of classes", got=list(x.shape))
    wide = x.astype(np.float64)
    shares = np.cumsum(functions.exp(wide - wide.max(axis=1, keepdims=True)), axis=1)
    draws = uniform(call, (len(x), size)) * shares[:, -1:]
    return (draws[:, :, None] >= shares[:, None, :]).sum(axis=2).astype(element_type(call, number))


RANDOM: Table = {
    "Bernoulli": Operator(bernoulli, random=True),
    "Multinomial": Operator(multinomial, random=True),
    "RandomNormal": Operator(random_normal, random=True),
    "RandomNormalLike": Operator(random_normal, random=True),
    "RandomUniform": Operator(random_uniform, random=True),
    "RandomUniformLike": Operator(random_uniform, random=True),
}
