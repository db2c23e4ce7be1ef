"""Lanes of two vectors put together where a boundary between positions falls into a chunk."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types

from modelc.kernels.jit import intrinsic
from modelc.kernels.llvm_vectors import I32, LANES, VI
from modelc.kernels.simd import F32x16

I64 = ir.IntType(64)


@intrinsic
def blend(typing_context: Any, first: Any, low: Any, high: Any) -> Any:
    """Lanes below `first` of `low`, the others of `high`; `first` (int64) may be negative or beyond the last lane."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        first, low, high = args
        zero, all_lanes = ir.Constant(I64, 0), ir.Constant(I64, LANES)
        first = builder.select(builder.icmp_signed("<", first, zero), zero, first)
        first = builder.select(builder.icmp_signed(">", first, all_lanes), all_lanes, first)
        undefined = ir.Constant(VI, ir.Undefined)
        limit = builder.insert_element(undefined, builder.trunc(first, I32), ir.Constant(I32, 0))
        limit = builder.shuffle_vector(limit, undefined, ir.Constant(VI, [0] * LANES))
        below = builder.icmp_signed("<", ir.Constant(VI, list(range(LANES))), limit)
        return builder.select(below, low, high)

    return F32x16(types.int64, F32x16, F32x16), codegen
