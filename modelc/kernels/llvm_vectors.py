"""Types and small steps of LLVM code for vectors, for those who write it."""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils

LANES = 16
F32 = ir.FloatType()
F16 = ir.HalfType()
I8 = ir.IntType(8)
I16 = ir.IntType(16)
I32 = ir.IntType(32)
VF = ir.VectorType(F32, LANES)
VI = ir.VectorType(I32, LANES)
HALVES = ir.VectorType(I16, LANES)


def constant(value: float, llvm: ir.VectorType = VI) -> ir.Constant:
    """A vector constant with `value` in every lane."""
    return ir.Constant(llvm, [value] * llvm.count)


def splat(builder: ir.IRBuilder, scalar: ir.Value) -> ir.Value:
    """A scalar in all 16 lanes."""
    undefined = ir.Constant(ir.VectorType(scalar.type, LANES), ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(I32, 0))
    return builder.shuffle_vector(first, undefined, constant(0))


def part(builder: ir.IRBuilder, value: ir.Value, start: int, count: int) -> ir.Value:
    """Lanes `start` to `start + count`."""
    indices = ir.Constant(ir.VectorType(I32, count), list(range(start, start + count)))
    return builder.shuffle_vector(value, ir.Constant(value.type, ir.Undefined), indices)


def join(builder: ir.IRBuilder, low: ir.Value, high: ir.Value) -> ir.Value:
    """The lanes of `low`, then those of `high`, which has as many."""
    count = 2 * low.type.count
    return builder.shuffle_vector(low, high, ir.Constant(ir.VectorType(I32, count), list(range(count))))


def call(builder: ir.IRBuilder, name: str, result: ir.Type, args: list[ir.Value]) -> ir.Value:
    """A call of LLVM's intrinsic or the C function `name`."""
    function_type = ir.FunctionType(result, [a.type for a in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, function_type, name), args)
