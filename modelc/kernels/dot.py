"""Exact integer dot products of bytes and the look-up of 4-bit codes, each by the target's best instruction.

Integer arithmetic without saturation is exact, so every version gives the same bits.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from modelc.kernels.jit import intrinsic
from modelc.kernels.simd import I8, I16, I32, VI, I32x16, _call, _constant, _join, _part
from modelc.kernels.target_features import choose, once

BYTES = ir.VectorType(I8, 64)
# The instruction that multiplies and adds n pairs, and the feature that brings it.
PAIRS = {
    16: ("avx512bw", "llvm.x86.avx512.pmaddw.d.512"),
    8: ("avx2", "llvm.x86.avx2.pmadd.wd"),
    4: ("sse2", "llvm.x86.sse2.pmadd.wd"),
}


def _multiply_add_pairs(context: Any, builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """<2n x i16> x, y -> <n x i32>: x[2i] * y[2i] + x[2i+1] * y[2i+1]."""
    n = x.type.count // 2
    result = ir.VectorType(I32, n)
    feature, name = PAIRS[n]

    def narrower() -> ir.Value:
        if n == 4:
            return _multiply_add_four_pairs(builder, x, y)
        halves = [_multiply_add_pairs(context, builder, *(_part(builder, v, k, n) for v in (x, y))) for k in (0, n)]
        return _join(builder, *halves)

    return choose(context, builder, feature, lambda: _call(builder, name, result, [x, y]), narrower)


def _multiply_add_four_pairs(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    wide, result = ir.VectorType(I32, 8), ir.VectorType(I32, 4)
    product = builder.mul(builder.sext(x, wide), builder.sext(y, wide))
    even, odd = (builder.shuffle_vector(product, product, ir.Constant(result, list(range(k, 8, 2)))) for k in (0, 1))
    return builder.add(even, odd)


@intrinsic
def dot_u8i8(typing_context: Any, acc: Any, w: Any, x: Any) -> Any:
    """Lane by lane acc + the sum of 4 products u8(w byte) * i8(x byte), exact int32 (vpdpbusd where it exists)."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        def define(body: ir.IRBuilder, acc: ir.Value, w: ir.Value, x: ir.Value) -> ir.Value:
            return choose(
                context,
                body,
                "avx512vnni",
                lambda: _vpdpbusd(body, 512, acc, w, x),
                lambda: choose(
                    context,
                    body,
                    "avxvnni",
                    lambda: _join(
                        body, *(_vpdpbusd(body, 256, *(_part(body, v, k, 8) for v in (acc, w, x))) for k in (0, 8))
                    ),
                    lambda: _dot_by_words(context, body, acc, w, x),
                ),
            )

        return once(builder, "modelc.dot_u8i8", VI, list(args), define)

    return I32x16(I32x16, I32x16, I32x16), codegen


def _vpdpbusd(builder: ir.IRBuilder, bits: int, acc: ir.Value, w: ir.Value, x: ir.Value) -> ir.Value:
    whole = ir.VectorType(I8, bits // 8)
    operands = [acc, builder.bitcast(w, whole), builder.bitcast(x, whole)]
    return _call(builder, f"llvm.x86.avx512.vpdpbusd.{bits}", acc.type, operands)


def _dot_by_words(context: Any, builder: ir.IRBuilder, acc: ir.Value, w: ir.Value, x: ir.Value) -> ir.Value:
    """Bytes widened to 16 bits and multiplied by pmaddwd: pmaddubsw would saturate."""
    words = ir.VectorType(I16, 32)
    eight, low = ir.Constant(words, [8] * 32), ir.Constant(words, [255] * 32)
    w16, x16 = builder.bitcast(w, words), builder.bitcast(x, words)
    even = _multiply_add_pairs(context, builder, builder.and_(w16, low), builder.ashr(builder.shl(x16, eight), eight))
    odd = _multiply_add_pairs(context, builder, builder.lshr(w16, eight), builder.ashr(x16, eight))
    return builder.add(acc, builder.add(even, odd))


# IQ4_NL: the 16 values of a code, plus 128. Source: ggml's table kvalues_iq4nl.
CODEBOOK = [v + 128 for v in (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)]


@intrinsic
def look_up(typing_context: Any, codes: Any) -> Any:
    """Each byte's code (0 to 15) replaced by its IQ4_NL value plus 128."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        def define(body: ir.IRBuilder, codes: ir.Value) -> ir.Value:
            codes = body.bitcast(codes, BYTES)
            values = choose(
                context,
                body,
                "avx512bw",
                lambda: _call(body, "llvm.x86.avx512.pshuf.b.512", BYTES, [_constants(64), codes]),
                lambda: choose(
                    context,
                    body,
                    "ssse3",
                    lambda: _look_up_by_shuffles(body, codes),
                    lambda: _look_up_by_comparisons(body, codes),
                ),
            )
            return body.bitcast(values, VI)

        return once(builder, "modelc.look_up", VI, list(args), define)

    return I32x16(I32x16), codegen


def _constants(n_bytes: int) -> ir.Constant:
    return ir.Constant(ir.VectorType(I8, n_bytes), CODEBOOK * (n_bytes // 16))


def _look_up_by_shuffles(builder: ir.IRBuilder, codes: ir.Value) -> ir.Value:
    result = ir.VectorType(I8, 16)
    q = [
        _call(builder, "llvm.x86.ssse3.pshuf.b.128", result, [_constants(16), _part(builder, codes, k, 16)])
        for k in (0, 16, 32, 48)
    ]
    return _join(builder, _join(builder, q[0], q[1]), _join(builder, q[2], q[3]))


def _look_up_by_comparisons(builder: ir.IRBuilder, codes: ir.Value) -> ir.Value:
    values = _constant(CODEBOOK[0], BYTES)
    for code in range(1, 16):
        is_code = builder.icmp_unsigned("==", codes, _constant(code, BYTES))
        values = builder.select(is_code, _constant(CODEBOOK[code], BYTES), values)
    return values
