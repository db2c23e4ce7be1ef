"""The search for scales and minimums with which codes come nearest to values: what all quantizers share.

The 16 lanes of a vector try 16 scales at once, value by value, so every sum has the order of the values. Errors are
sums of squares. Of equal candidates the first wins.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types

from modelc.layout.loop_compiler import inlined, instruction
from modelc.layout.rounding import Number, inverse_of
from modelc.layout.vectors import Floats, constants, load, splat
from modelc.layout.words import F32, I32, I64, Buffer, Words, byte_pointer

CANDIDATES = 16

_PAIR: Any = types.UniTuple(types.float32, 2)  # type: ignore[no-untyped-call]


def _extremes(count: int) -> Any:
    @instruction
    def extremes(typing_context: Any, values: Any, at: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
            least = most = load(builder, args[0], args[1], count)
            while least.value.type.count > 1:
                least = least.half(False).at_most(least.half(True))
                most = most.half(False).at_least(most.half(True))
            return context.make_tuple(builder, signature.return_type, (least.lane(0), most.lane(0)))

        return _PAIR(values, types.int64), codegen

    return extremes


def _codes(count: int) -> Any:
    words = count // 4

    @instruction
    def codes(
        typing_context: Any, values: Any, at: Any, minimum: Any, inverse: Any, least: Any, most: Any, bias: Any
    ) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
            bounds = [builder.sitofp(bound, F32) for bound in args[4:]]
            floats = ((load(builder, args[0], args[1], count) - args[2]) * args[3]).rounded()
            floats = floats.at_least(bounds[0]).at_most(bounds[1]) + bounds[2]
            numbers = builder.fptosi(floats.value, ir.VectorType(I32, count))
            packed = builder.bitcast(
                builder.trunc(numbers, ir.VectorType(ir.IntType(8), count)), ir.VectorType(I32, words)
            )
            lanes = [builder.zext(builder.extract_element(packed, ir.Constant(I32, j)), I64) for j in range(words)]
            return context.make_tuple(builder, signature.return_type, lanes)

        numbers = (types.float32, types.float32, types.int64, types.int64, types.int64)
        result: Any = types.UniTuple(types.int64, words)  # type: ignore[no-untyped-call]
        return result(values, types.int64, *numbers), codegen

    return codes


# (values, at) -> the least and the largest of 32, or 16, floats at byte `at`
extremes_of_32: Callable[[Buffer, int], tuple[Number, Number]] = _extremes(32)
extremes_of_16: Callable[[Buffer, int], tuple[Number, Number]] = _extremes(16)
# (values, at, minimum, inverse, least, most, bias) -> round((value - minimum) * inverse), bounded, plus the bias, a
# byte each
codes_of_32: Callable[[Buffer, int, Number, Number, int, int, int], Words] = _codes(32)
codes_of_16: Callable[[Buffer, int, Number, Number, int, int, int], tuple[int, int, int, int]] = _codes(16)


@instruction
def try_scales(
    typing_context: Any,
    values: Any,
    at: Any,
    count: Any,
    minimum: Any,
    first: Any,
    step: Any,
    least: Any,
    most: Any,
) -> Any:
    """Which of the scales first + k * step, k from 0 to 15, brings scale * code + minimum nearest to `count` floats.

    Returns:
        The index k and the error, both float32.
    """

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        values, at, count, minimum, first, step = args[:6]
        bounds = [builder.sitofp(bound, F32) for bound in args[6:]]

        def nearest(scaled: Floats) -> Floats:
            return scaled.rounded().at_least(bounds[0]).at_most(bounds[1])

        found = try_each(builder, values, at, count, minimum, first, step, nearest)
        return context.make_tuple(builder, signature.return_type, found)

    floats = (types.float32, types.float32, types.float32)
    signature = _PAIR(values, types.int64, types.int64, *floats, types.int64, types.int64)
    return signature, codegen


def try_each(
    builder: ir.IRBuilder,
    values: ir.Value,
    at: ir.Value,
    count: ir.Value,
    minimum: ir.Value,
    first: ir.Value,
    step: ir.Value,
    nearest: Callable[[Floats], Floats],
) -> tuple[ir.Value, ir.Value]:
    """The code of `try_scales` for levels of any kind: `nearest` makes the nearest level of a value over a scale."""
    scales = constants(builder, range(CANDIDATES)) * step + first
    usable = builder.fcmp_ordered("!=", scales.value, ir.Constant(scales.value.type, [0.0] * CANDIDATES))
    inverses = (constants(builder, [1.0] * CANDIDATES) / scales).where(usable, 0.0)
    total = _Sum(builder)
    with cgutils.for_range(builder, count) as loop:
        value = _offset_value(builder, values, at, loop.index, minimum)
        rest = value - nearest(inverses * value) * scales
        total.add(rest * rest)
    index, error = _best(builder, constants(builder, [0.0] * CANDIDATES) - total.value())
    return index, builder.fsub(ir.Constant(F32, 0.0), error)


@instruction
def refine_scale(typing_context: Any, values: Any, at: Any, count: Any, scale: Any, least: Any, most: Any) -> Any:
    """The scale with the least squares of errors for the codes that `scale` gives `count` floats, whole sixteens.

    Sums: lane i takes values i, i + 16, …; then lane i and i + 8, 4, 2, 1.

    Returns:
        The scale, float32; `scale` itself where all codes are 0.
    """

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        values, at, count, scale = args[:4]
        bounds = [builder.sitofp(bound, F32) for bound in args[4:]]
        nothing, one = ir.Constant(F32, 0.0), ir.Constant(F32, 1.0)
        inverse = builder.select(builder.fcmp_ordered("!=", scale, nothing), builder.fdiv(one, scale), nothing)
        products, squares = _Sum(builder), _Sum(builder)
        with cgutils.for_range(builder, builder.udiv(count, ir.Constant(I64, CANDIDATES))) as loop:
            place = builder.add(at, builder.mul(loop.index, ir.Constant(I64, 4 * CANDIDATES)))
            floats = load(builder, values, place, CANDIDATES)
            codes = (floats * inverse).rounded().at_least(bounds[0]).at_most(bounds[1])
            products.add(codes * floats)
            squares.add(codes * codes)
        product, square = (_sum_lanes(total.value()) for total in (products, squares))
        usable = builder.fcmp_ordered(">", square, nothing)
        return builder.select(usable, builder.fdiv(product, square), scale)

    floats = (types.float32, types.int64, types.int64)
    return types.float32(values, types.int64, types.int64, *floats), codegen


@instruction
def fit_line(
    typing_context: Any,
    values: Any,
    at: Any,
    count: Any,
    origin: Any,
    first: Any,
    step: Any,
    most: Any,
    ceiling: Any,
) -> Any:
    """Codes 0 to `most` for 16 inverse scales, and for each the scale and minimum with the least error.

    Code c of a value is round((value - origin) * inverse), inverse = first + k * step. The minimum is not above
    `ceiling`.

    Returns:
        Scale and minimum of the best k, both float32.
    """

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        values, at, count, origin, first, step, most, ceiling = args
        bound = builder.sitofp(most, F32)
        number = builder.sitofp(count, F32)
        inverses = constants(builder, range(CANDIDATES)) * step + first
        sum_c, sum_cc, sum_v, sum_vc = (_Sum(builder) for _ in range(4))
        with cgutils.for_range(builder, count) as loop:
            value = _offset_value(builder, values, at, loop.index, origin)
            codes = (inverses * value).rounded().at_least(0.0).at_most(bound)
            sum_c.add(codes)
            sum_cc.add(codes * codes)
            sum_v.add(value)
            sum_vc.add(codes * value)
        c, cc, v, vc = (total.value() for total in (sum_c, sum_cc, sum_v, sum_vc))
        spread = cc * number - c * c
        flat = spread.is_above(0.0)
        minimum = ((cc * v - c * vc) / spread).where(flat, 0.0)
        minimum = minimum.at_most(builder.fsub(ceiling, origin))
        scale = ((vc - minimum * c) / cc).where(cc.is_above(0.0), 0.0)
        gain = scale * (vc + vc - scale * cc - (minimum + minimum) * c) + minimum * (v + v - minimum * number)
        index, _ = _best(builder, gain)
        lane = builder.fptosi(index, I32)
        best = builder.extract_element(scale.value, lane)
        lowest = builder.fadd(builder.extract_element(minimum.value, lane), origin)
        return context.make_tuple(builder, signature.return_type, (best, lowest))

    floats = (types.float32, types.float32, types.float32)
    signature = _PAIR(values, types.int64, types.int64, *floats, types.int64, types.float32)
    return signature, codegen


class _Sum:
    """Sums of the candidates while a loop runs; LLVM keeps them in a register."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        kind = ir.VectorType(F32, CANDIDATES)
        self._builder = builder
        self._place = cgutils.alloca_once(builder, kind)  # type: ignore[no-untyped-call]
        builder.store(ir.Constant(kind, [0.0] * CANDIDATES), self._place)

    def add(self, part: Floats) -> None:
        self._builder.store((self.value() + part).value, self._place)

    def value(self) -> Floats:
        return Floats(self._builder, self._builder.load(self._place))


def _sum_lanes(lanes: Floats) -> ir.Value:
    while lanes.value.type.count > 1:
        lanes = lanes.half(False) + lanes.half(True)
    return lanes.lane(0)


def _offset_value(builder: ir.IRBuilder, values: ir.Value, at: ir.Value, index: ir.Value, offset: ir.Value) -> Floats:
    """Float `index` behind byte `at`, less `offset`, in all lanes."""
    place = builder.add(at, builder.mul(builder.sext(index, I64), ir.Constant(I64, 4)))
    value = builder.load(byte_pointer(builder, values, place, F32), align=1)
    return splat(builder, builder.fsub(value, offset), CANDIDATES)


def _best(builder: ir.IRBuilder, gains: Floats) -> tuple[ir.Value, ir.Value]:
    """Index, as float32, and value of the first largest lane; NaN counts as the least."""
    gains = gains.where(builder.fcmp_ordered("ord", gains.value, gains.value), -math.inf)
    largest = gains
    while largest.value.type.count > 1:
        largest = largest.half(False).at_least(largest.half(True))
    best = largest.lane(0)
    is_best = builder.fcmp_ordered("==", gains.value, splat(builder, best, CANDIDATES).value)
    lanes = builder.bitcast(is_best, ir.IntType(CANDIDATES))  # the first lane is the lowest bit
    first = builder.cttz(lanes, ir.Constant(ir.IntType(1), 1))
    return builder.uitofp(first, F32), best


@inlined
def fit_signed(values: Buffer, at: int, count: int, furthest: Number, least: int, most: int) -> Number:
    """The scale with which codes `least` to `most` come nearest to `count` floats.

    Args:
        values: The floats.
        at: Byte at which they begin.
        count: How many, 16 or 32.
        furthest: The one with the largest absolute value; it gets a code near `least`.
        least: The least code, negative.
        most: The largest code.

    Returns:
        The scale, which is negative when `furthest` is positive.
    """
    # From one code more than the furthest value needs to two codes less, in fifths of a code.
    exact = furthest / np.float32(least)
    step = exact * np.float32(0.2) / np.float32(least)
    first = exact - step * np.float32(5)
    index, _ = try_scales(values, at, count, np.float32(0), first, step, least, most)
    scale: Number = refine_scale(values, at, count, first + index * step, least, most)
    return scale


@inlined
def fit_above(
    values: Buffer, at: int, count: int, lowest: Number, highest: Number, most: int, ceiling: Number
) -> tuple[Number, Number]:
    """Scale and minimum with which scale * code + minimum, codes 0 to `most`, comes nearest to `count` floats.

    Args:
        values: The floats.
        at: Byte at which they begin.
        count: How many.
        lowest: The least of them.
        highest: The largest of them.
        most: The largest code.
        ceiling: What the minimum may not exceed.

    Returns:
        The scale, not negative, and the minimum.
    """
    lowest = min(lowest, ceiling)
    inverse = inverse_of(highest - lowest)
    first, step = inverse * np.float32(most - 1.2), inverse * np.float32(0.15)  # k = 8 gives the highest the last code
    scale, minimum = fit_line(values, at, count, lowest, first, step, most, ceiling)
    for _ in range(2):
        inverse = inverse_of(scale)
        first, step = inverse * np.float32(0.96), inverse * np.float32(0.005)
        scale, minimum = fit_line(values, at, count, minimum, first, step, most, ceiling)
    return scale, minimum
