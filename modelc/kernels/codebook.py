"""The look-up of 4-bit codes in the 16 values of IQ4_NL, by the processor's best instruction."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from modelc.kernels.jit import intrinsic
from modelc.kernels.llvm_vectors import I8, VI, call, constant, join, part
from modelc.kernels.simd import I32x16
from modelc.kernels.target_features import choose_first, once

# IQ4_NL: the 16 values of a code, plus 128. Source: ggml's table kvalues_iq4nl.
CODEBOOK = [v + 128 for v in (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)]
BYTES = ir.VectorType(I8, 64)
PSHUFB, TBL = "llvm.x86.ssse3.pshuf.b.128", "llvm.aarch64.neon.tbl1.v16i8"


@intrinsic
def look_up(typing_context: Any, codes: Any) -> Any:
    """Each byte's code (0 to 15) replaced by its IQ4_NL value plus 128."""

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        def define(body: ir.IRBuilder, codes: ir.Value) -> ir.Value:
            codes = body.bitcast(codes, BYTES)
            table = _table(64)
            ways = [
                ("avx512bw", lambda: call(body, "llvm.x86.avx512.pshuf.b.512", BYTES, [table, codes])),
                ("ssse3", lambda: _look_up_by_quarters(body, PSHUFB, codes)),
                ("neon", lambda: _look_up_by_quarters(body, TBL, codes)),
            ]
            values = choose_first(context, body, ways, lambda: _look_up_by_comparisons(body, codes))
            return body.bitcast(values, VI)

        return once(builder, "modelc.look_up", VI, list(args), define)

    return I32x16(I32x16), codegen


def _table(n_bytes: int) -> ir.Constant:
    return ir.Constant(ir.VectorType(I8, n_bytes), CODEBOOK * (n_bytes // 16))


def _look_up_by_quarters(builder: ir.IRBuilder, name: str, codes: ir.Value) -> ir.Value:
    table = _table(16)
    q = [call(builder, name, table.type, [table, part(builder, codes, k, 16)]) for k in (0, 16, 32, 48)]
    return join(builder, join(builder, q[0], q[1]), join(builder, q[2], q[3]))


def _look_up_by_comparisons(builder: ir.IRBuilder, codes: ir.Value) -> ir.Value:
    values = constant(CODEBOOK[0], BYTES)
    for code in range(1, 16):
        is_code = builder.icmp_unsigned("==", codes, constant(code, BYTES))
        values = builder.select(is_code, constant(CODEBOOK[code], BYTES), values)
    return values
