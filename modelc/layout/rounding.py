"""Single numbers on their way into a block: scales to float16, quotients to codes."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from modelc.layout.floats import bits_of_float, float_of_bits
from modelc.layout.loop_compiler import inlined
from modelc.layout.words import Buffer, load_u32, store_u32

Number: TypeAlias = np.float32
ROUNDER = 1.5 * 2.0**23  # added to a number below 2**22 and taken away again, it leaves a whole number, half to even
MAX_HALF = 0x7BFF  # the largest float16, MAX_FLOAT16
MAX_FLOAT16 = 65504.0
LEAST_NORMAL = 0x38800000  # 2**-14, the least float16 that is not subnormal, as float32


@inlined
def half_of_float(value: Number) -> int:
    """The 16 bits of the float16 nearest to a finite float32, half to even; never infinite."""
    bits = bits_of_float(value)
    magnitude = bits & 0x7FFFFFFF
    if magnitude < LEAST_NORMAL:
        # The last bit of a sum between 0.5 and 1 stands for 2**-24, the unit of subnormal halves.
        half = bits_of_float(float_of_bits(magnitude) + np.float32(0.5)) - 0x3F000000
    else:
        half = min(((magnitude + 0x0FFF + (magnitude >> 13 & 1)) >> 13) - (112 << 10), MAX_HALF)
    signed: int = half | bits >> 16 & 0x8000
    return signed


@inlined
def inverse_of(scale: Number) -> Number:
    """1 / scale; 0 for a scale of 0, with which every code is 0."""
    return np.float32(1) / scale if scale != 0 else np.float32(0)


@inlined
def furthest(lowest: Number, highest: Number) -> Number:
    """The one further from 0; `lowest` when both are equally far."""
    return lowest if -lowest >= highest else highest


@inlined
def nearest_code(value: Number, least: int, most: int) -> int:
    """The whole number nearest to `value`, half to even, within the bounds."""
    inside = min(max(value, np.float32(least)), np.float32(most))
    return int((inside + np.float32(ROUNDER)) - np.float32(ROUNDER))


@inlined
def load_float(buffer: Buffer, at: int) -> Number:
    """The float32 at byte `at`."""
    value: Number = float_of_bits(load_u32(buffer, at))
    return value


@inlined
def store_float(buffer: Buffer, at: int, value: Number) -> None:
    """Inverse of `load_float`."""
    store_u32(buffer, at, bits_of_float(value))
