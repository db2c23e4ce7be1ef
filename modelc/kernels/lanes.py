"""Lane operations for arrays of any length: partial loads and stores, square roots, NaNs that stay NaN."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types

from modelc.kernels.jit import intrinsic
from modelc.kernels.llvm_vectors import I32, LANES, VF, call, constant, splat
from modelc.kernels.pointers import element_ptr
from modelc.kernels.simd import F32x16, I32x16


def _first_lanes(builder: ir.IRBuilder, count: ir.Value) -> ir.Value:
    """<16 x i1>: true in the first `count` lanes."""
    indices = ir.Constant(ir.VectorType(I32, LANES), list(range(LANES)))
    return builder.icmp_signed("<", indices, splat(builder, builder.trunc(count, I32)))


@intrinsic
def load_first(typing_context: Any, pointer: Any, index: Any, count: Any) -> Any:
    """`count` float32 from element `index` on; the other lanes are 0 and their memory is not touched."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        address = element_ptr(builder, signature.args[0], args[0], args[1], VF)
        operands = [address, ir.Constant(I32, 1), _first_lanes(builder, args[2]), constant(0.0, VF)]
        return call(builder, "llvm.masked.load.v16f32.p0", VF, operands)

    return F32x16(pointer, types.intp, types.intp), codegen


@intrinsic
def store_first(typing_context: Any, pointer: Any, index: Any, value: Any, count: Any) -> Any:
    """Write the first `count` lanes from element `index` on; memory behind them is not touched."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        address = element_ptr(builder, signature.args[0], args[0], args[1], VF)
        operands = [args[2], address, ir.Constant(I32, 1), _first_lanes(builder, args[3])]
        call(builder, "llvm.masked.store.v16f32.p0", ir.VoidType(), operands)
        return context.get_dummy_value()

    return types.void(pointer, types.intp, F32x16, types.intp), codegen


@intrinsic
def keep_first(typing_context: Any, value: Any, count: Any, other: Any) -> Any:
    """The first `count` lanes of `value`, then those of `other`."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return builder.select(_first_lanes(builder, args[1]), args[0], args[2])

    return F32x16(F32x16, types.intp, F32x16), codegen


@intrinsic
def square_root(typing_context: Any, value: Any) -> Any:
    """Lane by lane the square root, rounded to nearest as IEEE 754 wants it."""
    return F32x16(F32x16), lambda c, b, s, args: call(b, "llvm.sqrt.v16f32", VF, [args[0]])


@intrinsic
def or_nan(typing_context: Any, x: Any, value: Any) -> Any:
    """Lane by lane x where x is NaN, else `value`."""
    return F32x16(F32x16, F32x16), lambda c, b, s, a: b.select(b.fcmp_unordered("uno", a[0], a[0]), a[0], a[1])


@intrinsic
def where_below(typing_context: Any, x: Any, limit: Any, below: Any, other: Any) -> Any:
    """Lane by lane `below` where x < limit, else `other`."""
    return (
        F32x16(F32x16, F32x16, F32x16, F32x16),
        lambda c, b, s, a: b.select(b.fcmp_ordered("<", a[0], a[1]), a[2], a[3]),
    )


@intrinsic
def shift_right(typing_context: Any, value: Any, bits: Any) -> Any:
    """An arithmetic shift of int32 lanes."""
    return value(value, types.int32), lambda c, b, s, a: b.ashr(a[0], splat(b, a[1]))


@intrinsic
def maximum_i32(typing_context: Any, x: Any, y: Any) -> Any:
    """Lane by lane the larger of two int32."""
    return I32x16(I32x16, I32x16), lambda c, b, s, a: b.select(b.icmp_signed(">", a[0], a[1]), a[0], a[1])
