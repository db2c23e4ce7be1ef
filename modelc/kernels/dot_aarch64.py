"""Products of bytes and their sums by the instructions of AArch64: LLVM code for `dot`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from llvmlite import ir

from modelc.kernels.llvm_vectors import I8, I16, I32, LANES, call, join, part
from modelc.kernels.target_features import choose


def dot_signed(
    context: Any, builder: ir.IRBuilder, args: Sequence[ir.Value], add_products: Callable[..., ir.Value]
) -> ir.Value:
    """Bytes of w signed too, a quarter of the lanes at a time: sdot, or else `add_products`."""
    parts = []
    for k in range(0, LANES, 4):
        acc, *operands = (part(builder, value, k, 4) for value in args)
        operands = [builder.bitcast(value, ir.VectorType(I8, 16)) for value in operands]
        sdot = partial(call, builder, "llvm.aarch64.neon.sdot.v4i32.v16i8", acc.type, [acc, *operands])
        parts.append(choose(context, builder, "dotprod", sdot, partial(add_products, builder, acc, *operands)))
    return join(builder, join(builder, *parts[:2]), join(builder, *parts[2:]))


def add_small_products(builder: ir.IRBuilder, acc: ir.Value, w: ir.Value, x: ir.Value) -> ir.Value:
    """acc + products, two of which fit into 16 bits."""
    products = _products(builder, w, x)
    pairs = call(builder, "llvm.aarch64.neon.addp.v8i16", products[0].type, products)
    return builder.add(acc, _pair_sums(builder, pairs))


def add_products(builder: ir.IRBuilder, acc: ir.Value, w: ir.Value, x: ir.Value) -> ir.Value:
    """acc + products, two of which may need 17 bits."""
    pairs = [_pair_sums(builder, products) for products in _products(builder, w, x)]
    return builder.add(acc, call(builder, "llvm.aarch64.neon.addp.v4i32", acc.type, pairs))


def _products(builder: ir.IRBuilder, w: ir.Value, x: ir.Value) -> list[ir.Value]:
    """The 8 low and the 8 high products of 16 signed bytes."""
    halves = [[part(builder, value, k, 8) for value in (w, x)] for k in (0, 8)]
    return [call(builder, "llvm.aarch64.neon.smull.v8i16", ir.VectorType(I16, 8), half) for half in halves]


def _pair_sums(builder: ir.IRBuilder, words: ir.Value) -> ir.Value:
    return call(builder, "llvm.aarch64.neon.saddlp.v4i32.v8i16", ir.VectorType(I32, 4), [words])
