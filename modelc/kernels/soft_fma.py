"""The fused multiply-add of float32 vectors for processors that have none: the same bits, in float64 arithmetic.

A product of two floats is exact in float64, so x * y + z is rounded twice: to float64 and to float32. That differs from
one rounding only where the float64 lies exactly between two floats and was rounded to be there, or where the result is
subnormal. There the float64 is rounded to odd instead, which makes the second rounding right. Source: Emulation of FMA
and correctly rounded sums: proved algorithms using rounding to odd, IEEE Transactions on Computers 57, 2008.
"""

from __future__ import annotations

from llvmlite import ir

from modelc.kernels.llvm_vectors import F32, I32, call, constant

F64 = ir.DoubleType()
I1, I64 = ir.IntType(1), ir.IntType(64)
CUT_OFF = (1 << 29) - 1  # the bits that a float64 has and a float32 has not
HALF = 1 << 28  # and what they are between two floats
LEAST_NORMAL = (1023 - 126) << 20  # the upper half of 2^-126 as a float64


def soft_fma(builder: ir.IRBuilder, x: ir.Value, y: ir.Value, z: ir.Value) -> ir.Value:
    """Write the code for x * y + z, rounded once; vectors of float32."""
    n = x.type.count
    singles, doubles = ir.VectorType(F32, n), ir.VectorType(F64, n)
    x, y, z = (builder.fpext(value, doubles) for value in (x, y, z))
    product = builder.fmul(x, y)
    total = builder.fadd(product, z)
    twice = builder.fptrunc(total, singles)
    bits, words = builder.bitcast(total, ir.VectorType(I64, n)), ir.VectorType(I32, n)
    cut_off = builder.and_(builder.trunc(bits, words), _all(I32, n, CUT_OFF))
    is_between = builder.icmp_unsigned("==", cut_off, _all(I32, n, HALF))
    top = builder.trunc(builder.lshr(bits, _all(I64, n, 32)), words)
    magnitude = builder.and_(top, _all(I32, n, (1 << 31) - 1))
    one = _all(I32, n, 1)  # less one, zero is not below the least normal number
    is_subnormal = builder.icmp_unsigned("<", builder.sub(magnitude, one), _all(I32, n, LEAST_NORMAL - 1))
    start = builder.block
    with builder.if_then(_any(builder, builder.or_(is_between, is_subnormal)), likely=False):
        once = builder.fptrunc(_rounded_to_odd(builder, product, z, total), singles)
        end = builder.block
    result = builder.phi(singles)
    result.add_incoming(twice, start)
    result.add_incoming(once, end)
    return result


def _rounded_to_odd(builder: ir.IRBuilder, x: ir.Value, y: ir.Value, total: ir.Value) -> ir.Value:
    """x + y, of which `total` is the nearest float64: itself if exact, else the neighbour whose last bit is set."""
    n = x.type.count
    words = ir.VectorType(I64, n)
    y_part = builder.fsub(total, x)
    error = builder.fadd(builder.fsub(x, builder.fsub(total, y_part)), builder.fsub(y, y_part))
    bits = builder.bitcast(total, words)
    signs_differ = builder.ashr(builder.xor(bits, builder.bitcast(error, words)), _all(I64, n, 63))
    outwards = builder.or_(signs_differ, _all(I64, n, 1))  # 1, or -1 where the error has the other sign
    is_inexact = builder.sext(builder.fcmp_ordered("!=", error, _all(F64, n, 0.0)), words)  # an error may be a NaN
    is_even = builder.sub(builder.and_(bits, _all(I64, n, 1)), _all(I64, n, 1))
    step = builder.and_(outwards, builder.and_(is_inexact, is_even))
    return builder.bitcast(builder.add(bits, step), ir.VectorType(F64, n))


def _any(builder: ir.IRBuilder, flags: ir.Value) -> ir.Value:
    return call(builder, f"llvm.vector.reduce.or.v{flags.type.count}i1", I1, [flags])


def _all(element: ir.Type, n: int, value: float) -> ir.Constant:
    return constant(value, ir.VectorType(element, n))
