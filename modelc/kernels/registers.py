"""How many vectors of 16 floats a processor's registers hold."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types

from modelc.kernels.jit import intrinsic
from modelc.kernels.target_features import I1, choose


@intrinsic
def holds_32_vectors(typing_context: Any) -> Any:
    """True with AVX-512; AVX2 and AArch64 hold 8 vectors. A constant when machine code is made."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return choose(context, builder, "avx512f", lambda: ir.Constant(I1, 1), lambda: ir.Constant(I1, 0))

    return types.boolean(), codegen
