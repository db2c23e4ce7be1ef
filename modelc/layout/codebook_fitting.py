"""The search for scales with which the codebook's values come nearest to floats; see `fitting`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types

from modelc.layout.codebook import CODEBOOK
from modelc.layout.fitting import try_each
from modelc.layout.loop_compiler import inlined, instruction
from modelc.layout.rounding import Number
from modelc.layout.vectors import Floats, constants, load
from modelc.layout.words import F32, I32, I64, Buffer

COLS = 32
# Between neighbours of the codebook; a value on a midpoint gets the lower one.
_MIDPOINTS = tuple((low + high) / 2 for low, high in pairwise(CODEBOOK))


@instruction
def try_codebook(typing_context: Any, values: Any, at: Any, first: Any, step: Any) -> Any:
    """Which of the scales first + k * step, k from 0 to 15, brings scale * codebook nearest to 32 floats.

    Returns:
        The index k and the error, both float32.
    """

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        def nearest(scaled: Floats) -> Floats:
            return _count(scaled, float(CODEBOOK[0]), [high - low for low, high in pairwise(CODEBOOK)])

        count, minimum = ir.Constant(I64, COLS), ir.Constant(F32, 0.0)
        found = try_each(builder, args[0], args[1], count, minimum, args[2], args[3], nearest)
        return context.make_tuple(builder, signature.return_type, found)

    pair: Any = types.UniTuple(types.float32, 2)  # type: ignore[no-untyped-call]
    return pair(values, types.int64, types.float32, types.float32), codegen


@instruction
def codebook_codes(typing_context: Any, values: Any, at: Any, inverse: Any) -> Any:
    """The codes of 32 floats times `inverse`, a byte each, as 8 words."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        codes = _count(load(builder, args[0], args[1], COLS) * args[2], 0.0, [1] * len(_MIDPOINTS))
        numbers = builder.fptosi(codes.value, ir.VectorType(ir.IntType(8), COLS))
        packed = builder.bitcast(numbers, ir.VectorType(I32, COLS // 4))
        words = [builder.zext(builder.extract_element(packed, ir.Constant(I32, j)), I64) for j in range(COLS // 4)]
        return context.make_tuple(builder, signature.return_type, words)

    words: Any = types.UniTuple(types.int64, COLS // 4)  # type: ignore[no-untyped-call]
    return words(values, types.int64, types.float32), codegen


@inlined
def fit_codebook(values: Buffer, at: int, furthest: Number) -> Number:
    """The scale with which the codebook comes nearest to 32 floats, of which `furthest` is the furthest from 0."""
    exact = furthest / np.float32(CODEBOOK[0])
    step = exact * np.float32(-0.025)
    first = exact - step * np.float32(5)
    index, _ = try_codebook(values, at, first, step)
    best, step = first + index * step, step * np.float32(0.125)
    first = best - step * np.float32(8)
    index, _ = try_codebook(values, at, first, step)
    scale: Number = first + index * step
    return scale


def _count(scaled: Floats, base: float, gains: list[int]) -> Floats:
    """`base`, and the gain of every midpoint that a lane is above."""
    total = constants(scaled.builder, [base] * scaled.value.type.count)
    for midpoint, gain in zip(_MIDPOINTS, gains, strict=True):
        gained = constants(scaled.builder, [gain] * scaled.value.type.count)
        total = total + gained.where(scaled.is_above(midpoint), 0.0)
    return total
