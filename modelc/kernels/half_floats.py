"""Conversions between float32 and its halves, 16 at a time: LLVM code for loads and stores."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from modelc.kernels.llvm_vectors import F16, HALVES, LANES, VF, VI, constant
from modelc.kernels.target_features import choose_first, once


def half_to_f32(context: Any, builder: ir.IRBuilder, bits: ir.Value) -> ir.Value:
    """Exact float16 -> float32: vcvtph2ps with F16C, fcvtl on AArch64, else a shift and an exact product by 2^112."""

    def define(body: ir.IRBuilder, bits: ir.Value) -> ir.Value:
        def convert() -> ir.Value:
            return body.fpext(body.bitcast(bits, ir.VectorType(F16, LANES)), VF)

        ways = [("f16c", convert), ("neon", convert)]
        return choose_first(context, body, ways, lambda: _half_to_f32_by_integers(body, bits))

    return once(builder, "modelc.half_to_f32", VF, [bits], define)


def _half_to_f32_by_integers(builder: ir.IRBuilder, bits: ir.Value) -> ir.Value:
    wide = builder.zext(bits, VI)
    magnitude = builder.shl(builder.and_(wide, constant(0x7FFF)), constant(13))
    scaled = builder.bitcast(builder.fmul(builder.bitcast(magnitude, VF), constant(2.0**112, VF)), VI)
    special = builder.or_(magnitude, constant(0x7F800000))  # infinities and NaNs keep an all-ones exponent
    is_special = builder.icmp_unsigned(">=", magnitude, constant(0x0F800000))
    sign = builder.shl(builder.and_(wide, constant(0x8000)), constant(16))
    return builder.bitcast(builder.or_(builder.select(is_special, special, scaled), sign), VF)


def f32_to_half(context: Any, builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """float32 -> float16 bits, round to nearest even (finite values and infinities)."""

    def define(body: ir.IRBuilder, value: ir.Value) -> ir.Value:
        def convert() -> ir.Value:
            return body.bitcast(body.fptrunc(value, ir.VectorType(F16, LANES)), HALVES)

        ways = [("f16c", convert), ("neon", convert)]
        return choose_first(context, body, ways, lambda: _f32_to_half_by_integers(body, value))

    return once(builder, "modelc.f32_to_half", HALVES, [value], define)


def _f32_to_half_by_integers(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    bits = builder.bitcast(value, VI)
    sign = builder.and_(bits, constant(-0x80000000))
    magnitude = builder.xor(bits, sign)
    odd = builder.and_(builder.lshr(magnitude, constant(13)), constant(1))
    rebased = builder.add(builder.add(magnitude, constant(0xFFF - 0x38000000)), odd)
    normal = builder.lshr(rebased, constant(13))
    # Adding 0.5 moves a subnormal half's bits to the bottom of the word, rounded by the addition itself.
    shifted = builder.fadd(builder.bitcast(magnitude, VF), constant(0.5, VF))
    subnormal = builder.sub(builder.bitcast(shifted, VI), constant(0x3F000000))
    half = builder.select(builder.icmp_unsigned("<", magnitude, constant(0x38800000)), subnormal, normal)
    half = builder.select(builder.icmp_unsigned(">", magnitude, constant(0x477FEFFF)), constant(0x7C00), half)
    half = builder.select(builder.icmp_unsigned(">", magnitude, constant(0x7F800000)), constant(0x7E00), half)
    return builder.trunc(builder.or_(half, builder.lshr(sign, constant(16))), HALVES)


def bfloat_to_f32(context: Any, builder: ir.IRBuilder, bits: ir.Value) -> ir.Value:
    """bfloat16 -> float32, which has the same upper half."""
    return builder.bitcast(builder.shl(builder.zext(bits, VI), constant(16)), VF)
