"""Exact integer dot products of bytes and the look-up of 4-bit codes, each by the target's best instruction.

Integer arithmetic without saturation is exact, so every version gives the same bits.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from modelc.kernels.jit import intrinsic
from modelc.kernels.simd import I8, I16, I32, VI, I32x16, _call, _constant, _join, _part, target_has


def _multiply_add_pairs(context: Any, builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """<2n x i16> x, y -> <n x i32>: x[2i] * y[2i] + x[2i+1] * y[2i+1]."""
    n = x.type.count // 2
    result = ir.VectorType(I32, n)
    if n == 16 and target_has(context, "avx512bw"):
        return _call(builder, "llvm.x86.avx512.pmaddw.d.512", result, [x, y])
    if n == 8 and target_has(context, "avx2"):
        return _call(builder, "llvm.x86.avx2.pmadd.wd", result, [x, y])
    if n == 4 and target_has(context, "sse2"):
        return _call(builder, "llvm.x86.sse2.pmadd.wd", result, [x, y])
    if n > 4:
        halves = [
            _multiply_add_pairs(context, builder, _part(builder, x, k, n), _part(builder, y, k, n)) for k in (0, n)
        ]
        return _join(builder, *halves)
    wide = ir.VectorType(I32, 2 * n)
    product = builder.mul(builder.sext(x, wide), builder.sext(y, wide))
    pairs = [ir.Constant(result, list(range(k, 2 * n, 2))) for k in (0, 1)]
    even, odd = (builder.shuffle_vector(product, product, indices) for indices in pairs)
    return builder.add(even, odd)


@intrinsic
def dot_u8i8(typing_context: Any, acc: Any, w: Any, x: Any) -> Any:
    """Lane by lane acc + the sum of 4 products u8(w byte) * i8(x byte), exact int32 (vpdpbusd where it exists)."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        acc, w, x = args
        if target_has(context, "avx512vnni"):
            whole = ir.VectorType(I8, 64)
            operands = [acc, builder.bitcast(w, whole), builder.bitcast(x, whole)]
            return _call(builder, "llvm.x86.avx512.vpdpbusd.512", VI, operands)
        if target_has(context, "avxvnni"):
            half = ir.VectorType(I8, 32)
            parts = []
            for k in (0, 8):
                operands = [_part(builder, acc, k, 8)]
                operands += [builder.bitcast(_part(builder, v, k, 8), half) for v in (w, x)]
                parts.append(_call(builder, "llvm.x86.avx512.vpdpbusd.256", ir.VectorType(I32, 8), operands))
            return _join(builder, *parts)
        # pmaddubsw would saturate: even and odd bytes are widened to 16 bits and multiplied by pmaddwd instead.
        words = ir.VectorType(I16, 32)
        eight, low = ir.Constant(words, [8] * 32), ir.Constant(words, [255] * 32)
        w16, x16 = builder.bitcast(w, words), builder.bitcast(x, words)
        even = _multiply_add_pairs(
            context, builder, builder.and_(w16, low), builder.ashr(builder.shl(x16, eight), eight)
        )
        odd = _multiply_add_pairs(context, builder, builder.lshr(w16, eight), builder.ashr(x16, eight))
        return builder.add(acc, builder.add(even, odd))

    return I32x16(I32x16, I32x16, I32x16), codegen


# IQ4_NL: the 16 values of a code, plus 128. Source: ggml's table kvalues_iq4nl.
CODEBOOK = [v + 128 for v in (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)]


@intrinsic
def look_up(typing_context: Any, codes: Any) -> Any:
    """Each byte's code (0 to 15) replaced by its IQ4_NL value plus 128."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        bytes64 = ir.VectorType(I8, 64)
        codes = builder.bitcast(args[0], bytes64)
        if target_has(context, "avx512bw"):
            table = ir.Constant(bytes64, CODEBOOK * 4)
            return builder.bitcast(_call(builder, "llvm.x86.avx512.pshuf.b.512", bytes64, [table, codes]), VI)
        if target_has(context, "ssse3"):
            bytes16 = ir.VectorType(I8, 16)
            table = ir.Constant(bytes16, CODEBOOK)
            q = [
                _call(builder, "llvm.x86.ssse3.pshuf.b.128", bytes16, [table, _part(builder, codes, k, 16)])
                for k in (0, 16, 32, 48)
            ]
            return builder.bitcast(_join(builder, _join(builder, q[0], q[1]), _join(builder, q[2], q[3])), VI)
        values = _constant(CODEBOOK[0], bytes64)
        for code in range(1, 16):
            is_code = builder.icmp_unsigned("==", codes, _constant(code, bytes64))
            values = builder.select(is_code, _constant(CODEBOOK[code], bytes64), values)
        return builder.bitcast(values, VI)

    return I32x16(I32x16), codegen
