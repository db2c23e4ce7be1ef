"""One lowered kernel becomes machine code for any processor."""

from __future__ import annotations

import re
from struct import iter_unpack

import pytest

from modelc.kernels.machine_code import Processor, object_file

# Of AArch64's instructions on vectors what is left without the registers. Source: Arm's architecture manual.
VECTOR_OPERATION, SMULL, SDOT = 0xFFE0FC00, 0x0E20C000, 0x4E809400


def code_for(ir: tuple[str, str], triple: str, cpu: str, features: str, level: int = 3) -> bytes:
    symbol, text = ir
    return object_file(text, symbol, Processor(triple, cpu, features), "dots", level)


@pytest.mark.parametrize("level", [0, 3])
def test_machine_code_uses_what_the_processor_has_and_nothing_else(dots_ir: tuple[str, str], level: int) -> None:
    vpdpbusd = re.compile(rb"\x62.{2}[\x40-\x5f]\x50", re.DOTALL)  # EVEX prefix for 512 bits, then the opcode
    x86 = "x86_64-unknown-linux-gnu"
    assert vpdpbusd.search(code_for(dots_ir, x86, "x86-64-v4", "+avx2,+avx512f,+avx512bw,+avx512vnni", level))
    assert not vpdpbusd.search(code_for(dots_ir, x86, "x86-64-v4", "+avx2,+avx512f,+avx512bw", level))
    assert b"dots\0" in code_for(dots_ir, x86, "x86-64-v2", "+sse2", level)
    aarch64 = code_for(dots_ir, "aarch64-unknown-linux-gnu", "generic", "+neon", level)
    assert aarch64[18:20] == b"\xb7\0", "an object for AArch64, from the same IR"


@pytest.mark.parametrize(("features", "instruction"), [("+neon", SMULL), ("+neon,+dotprod", SDOT)])
def test_aarch64_multiplies_bytes_by_its_best_instruction(
    dots_ir: tuple[str, str], features: str, instruction: int
) -> None:
    code = code_for(dots_ir, "aarch64-unknown-linux-gnu", "generic", features)
    found = {word & VECTOR_OPERATION for (word,) in iter_unpack("<I", code[: len(code) // 4 * 4])}
    assert found & {SMULL, SDOT} == {instruction}
