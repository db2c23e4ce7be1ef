"""Products of bytes and their sums by the instructions of x86-64: LLVM code for `dot`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from modelc.kernels.llvm_vectors import I8, I16, I32, LANES, VI, call, constant, join, part
from modelc.kernels.target_features import choose

# The instruction that multiplies and adds the 2n words of n lanes in pairs, and the feature that brings it.
WORD_PAIRS = {
    16: ("avx512bw", "llvm.x86.avx512.pmaddw.d.512"),
    8: ("avx2", "llvm.x86.avx2.pmadd.wd"),
    4: ("sse2", "llvm.x86.sse2.pmadd.wd"),
}
# The same for the 4n bytes of n lanes, unsigned and signed; it saturates.
BYTE_PAIRS = {
    16: ("avx512bw", "llvm.x86.avx512.pmaddubs.w.512"),
    8: ("avx2", "llvm.x86.avx2.pmadd.ub.sw"),
    4: ("ssse3", "llvm.x86.ssse3.pmadd.ub.sw.128"),
}
VNNI = ("avx512vnni", "avxvnni")  # features that bring vpdpbusd
Ways = list[tuple[str, Callable[[], ir.Value]]]


def by_vnni(builder: ir.IRBuilder, args: Sequence[ir.Value]) -> Ways:
    """vpdpbusd of unsigned and signed bytes, whole or in halves."""

    def in_halves() -> ir.Value:
        halves = [[part(builder, value, k, 8) for value in args] for k in (0, 8)]
        return join(builder, *(_vpdpbusd(builder, *half) for half in halves))

    return list(zip(VNNI, (lambda: _vpdpbusd(builder, *args), in_halves), strict=True))


def _vpdpbusd(builder: ir.IRBuilder, acc: ir.Value, w: ir.Value, x: ir.Value) -> ir.Value:
    n = acc.type.count
    operands = [acc, *(builder.bitcast(value, ir.VectorType(I8, 4 * n)) for value in (w, x))]
    return call(builder, f"llvm.x86.avx512.vpdpbusd.{32 * n}", acc.type, operands)


def dot_by_signs(context: Any, builder: ir.IRBuilder, acc: ir.Value, w: ir.Value, x: ir.Value) -> ir.Value:
    """pmaddubsw of w without its sign and x with it, which does not saturate without -128 in x, and pmaddwd."""
    bytes_ = ir.VectorType(I8, 4 * LANES)
    w, x = builder.bitcast(w, bytes_), builder.bitcast(x, bytes_)
    magnitude = call(builder, f"llvm.abs.v{bytes_.count}i8", bytes_, [w, ir.Constant(ir.IntType(1), 0)])
    turned = _with_signs(context, builder, x, w)
    pairs = multiply_add_bytes(context, builder, *(builder.bitcast(value, VI) for value in (magnitude, turned)))
    return builder.add(acc, pairs_of_words(context, builder, pairs))


def _with_signs(context: Any, builder: ir.IRBuilder, x: ir.Value, w: ir.Value) -> ir.Value:
    """Bytes x, negated where those of w are negative."""
    n = x.type.count
    if n == 16:
        return call(builder, "llvm.x86.ssse3.psign.b.128", x.type, [x, w])

    def at_once() -> ir.Value:
        if n == 32:
            return call(builder, "llvm.x86.avx2.psign.b", x.type, [x, w])
        zero = constant(0, x.type)
        return builder.select(builder.icmp_signed("<", w, zero), builder.sub(zero, x), x)

    def in_halves() -> ir.Value:
        halves = [[part(builder, value, k, n // 2) for value in (x, w)] for k in (0, n // 2)]
        return join(builder, *(_with_signs(context, builder, *half) for half in halves))

    return choose(context, builder, "avx2" if n == 32 else "avx512bw", at_once, in_halves)


def dot_by_word_pairs(context: Any, builder: ir.IRBuilder, acc: ir.Value, w: ir.Value, x: ir.Value) -> ir.Value:
    """Bytes widened to words, and pmaddwd."""
    parts = zip(_even_and_odd(builder, w, is_signed=False), _even_and_odd(builder, x, is_signed=True), strict=True)
    even, odd = (_multiply_add_words(context, builder, *pair) for pair in parts)
    return builder.add(acc, builder.add(even, odd))


def _even_and_odd(builder: ir.IRBuilder, value: ir.Value, is_signed: bool) -> tuple[ir.Value, ir.Value]:
    """The even and the odd bytes of lanes, as words."""
    words = ir.VectorType(I16, 2 * value.type.count)
    eight = constant(8, words)
    value = builder.bitcast(value, words)
    shift = builder.ashr if is_signed else builder.lshr
    return shift(builder.shl(value, eight), eight), shift(value, eight)


def pairs_of_words(context: Any, builder: ir.IRBuilder, words: ir.Value) -> ir.Value:
    """<2n x i16> -> <n x i32>: the sums of pairs."""
    return _multiply_add_words(context, builder, words, constant(1, words.type))


def _multiply_add_words(context: Any, builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """<2n x i16> x, y -> <n x i32>: x[2i] * y[2i] + x[2i+1] * y[2i+1]."""
    n = x.type.count // 2
    result = ir.VectorType(I32, n)
    feature, name = WORD_PAIRS[n]

    def narrower() -> ir.Value:
        if n == 4:
            return _multiply_add_8_words(builder, x, y)
        halves = [_multiply_add_words(context, builder, *(part(builder, v, k, n) for v in (x, y))) for k in (0, n)]
        return join(builder, *halves)

    return choose(context, builder, feature, lambda: call(builder, name, result, [x, y]), narrower)


def _multiply_add_8_words(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    wide, result = ir.VectorType(I32, 8), ir.VectorType(I32, 4)
    product = builder.mul(builder.sext(x, wide), builder.sext(y, wide))
    even, odd = (builder.shuffle_vector(product, product, ir.Constant(result, list(range(k, 8, 2)))) for k in (0, 1))
    return builder.add(even, odd)


def multiply_add_bytes(context: Any, builder: ir.IRBuilder, w: ir.Value, x: ir.Value) -> ir.Value:
    """<n x i32> w, x as bytes -> <2n x i16>: w[2i] * x[2i] + w[2i+1] * x[2i+1]."""
    n = w.type.count
    result = ir.VectorType(I16, 2 * n)
    feature, name = BYTE_PAIRS[n]

    def at_once() -> ir.Value:
        return call(builder, name, result, [builder.bitcast(v, ir.VectorType(I8, 4 * n)) for v in (w, x)])

    def narrower() -> ir.Value:
        if n == 4:
            return _multiply_add_16_bytes(builder, w, x)
        halves = [[part(builder, v, k, n // 2) for v in (w, x)] for k in (0, n // 2)]
        return join(builder, *(multiply_add_bytes(context, builder, *half) for half in halves))

    return choose(context, builder, feature, at_once, narrower)


def _multiply_add_16_bytes(builder: ir.IRBuilder, w: ir.Value, x: ir.Value) -> ir.Value:
    parts = zip(_even_and_odd(builder, w, is_signed=False), _even_and_odd(builder, x, is_signed=True), strict=True)
    even, odd = (builder.mul(*pair) for pair in parts)
    return builder.add(even, odd)
