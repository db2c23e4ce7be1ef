"""Exact integer dot products of bytes, each by the processor's best instructions.

Integer arithmetic without saturation is exact, so every version gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir

from modelc.kernels.dot_aarch64 import add_products, add_small_products, dot_signed
from modelc.kernels.dot_x86 import (
    VNNI,
    Ways,
    by_vnni,
    dot_by_signs,
    dot_by_word_pairs,
    multiply_add_bytes,
    pairs_of_words,
)
from modelc.kernels.jit import intrinsic
from modelc.kernels.llvm_vectors import I16, LANES, VI, constant
from modelc.kernels.simd import I32x16
from modelc.kernels.target_features import choose_first, once


@intrinsic
def narrow_start(typing_context: Any, start: Any) -> Any:
    """What a sum of `dot_narrow` begins with, to be `start` + products in the end."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return _if_narrow(context, builder, lambda: constant(0), lambda: args[0])

    return I32x16(I32x16), codegen


@intrinsic
def dot_narrow(typing_context: Any, acc: Any, w: Any, x: Any) -> Any:
    """Lane by lane acc + the sum of 4 products of w's bytes, 0 to 63, and x's signed bytes.

    Until `narrow_end` the sum may be kept in two words of 16 bits: with bytes of w up to c, at most 32767 / (256 * c)
    dot products after `narrow_start` are exact, 8 for c = 15, 4 for 31, 2 for 63.
    """

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        def define(body: ir.IRBuilder, *args: ir.Value) -> ir.Value:
            def in_words() -> ir.Value:
                pairs = multiply_add_bytes(context, body, *args[1:])
                return body.bitcast(body.add(body.bitcast(args[0], pairs.type), pairs), VI)

            ways = by_vnni(body, args)
            signed = partial(dot_signed, context, body, args, add_small_products)
            return choose_first(context, body, [*ways, ("neon", signed)], in_words)

        return once(builder, "modelc.dot_narrow", VI, list(args), define)

    return I32x16(I32x16, I32x16, I32x16), codegen


@intrinsic
def narrow_end(typing_context: Any, acc: Any, start: Any) -> Any:
    """The sums of `dot_narrow` as int32, `start` included."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        def widened() -> ir.Value:
            pairs = builder.bitcast(args[0], ir.VectorType(I16, 2 * LANES))
            return builder.add(args[1], pairs_of_words(context, builder, pairs))

        return _if_narrow(context, builder, widened, lambda: args[0])

    return I32x16(I32x16, I32x16), codegen


def _if_narrow(
    context: Any, builder: ir.IRBuilder, narrow: Callable[[], ir.Value], wide: Callable[[], ir.Value]
) -> ir.Value:
    """The value of `wide()` where an instruction adds byte products to int32, else of `narrow()`."""
    ways = [(feature, wide) for feature in (*VNNI, "neon")]
    return choose_first(context, builder, ways, narrow)


def _make_biased(is_symmetric: bool, doc: str) -> tuple[Any, Any]:
    """The dot product of biased bytes, and how its sum begins; `is_symmetric`: no byte of x is -128."""
    name = f"modelc.dot_biased.{'symmetric' if is_symmetric else 'any'}"

    def signed_ways(value: Callable[[str], ir.Value]) -> Ways:
        """Processors that do best with w less 128, as signed bytes."""
        return [(feature, partial(value, feature)) for feature in (("neon", "ssse3") if is_symmetric else ("neon",))]

    @intrinsic
    def dot_biased(typing_context: Any, acc: Any, w: Any, x: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
            def define(body: ir.IRBuilder, acc: ir.Value, w: ir.Value, x: ir.Value) -> ir.Value:
                def signed(feature: str) -> ir.Value:
                    less_128 = body.xor(w, constant(-0x7F7F7F80))  # the highest bit of each byte
                    if feature == "neon":
                        add = add_small_products if is_symmetric else add_products
                        return dot_signed(context, body, (acc, less_128, x), add)
                    return dot_by_signs(context, body, acc, less_128, x)

                ways = [*by_vnni(body, (acc, w, x)), *signed_ways(signed)]
                return choose_first(context, body, ways, lambda: dot_by_word_pairs(context, body, acc, w, x))

            return once(builder, name, VI, list(args), define)

        return I32x16(I32x16, I32x16, I32x16), codegen

    @intrinsic
    def biased_start(typing_context: Any, total: Any) -> Any:
        """What a sum of biased products begins with: -128 * total, or 0 where 128 is subtracted from each w."""

        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
            biased, zero = partial(constant, -128), partial(constant, 0)
            ways: Ways = [*((feature, biased) for feature in VNNI), *signed_ways(lambda feature: zero())]
            return builder.mul(args[0], choose_first(context, builder, ways, biased))

        return I32x16(I32x16), codegen

    dot_biased.__doc__ = doc
    return dot_biased, biased_start


dot_biased, biased_start = _make_biased(
    False,
    """Lane by lane acc + the sum of 4 products of w's unsigned bytes less 128 and x's signed bytes; exact int32.

    The sum is right when it has begun with `biased_start` of all those x.
    """,
)
dot_symmetric, symmetric_start = _make_biased(
    True, """As `dot_biased`, for x from -127 to 127, with `symmetric_start`."""
)
