"""A kernel is lowered once; what a processor has decides afterwards which way its machine code goes."""

from __future__ import annotations

import re
from struct import iter_unpack

import pytest

from modelc.kernels.executor import OPCODE_ARGS
from modelc.kernels.jit import kernel
from modelc.kernels.lowering import lowered
from modelc.kernels.machine_code import Processor, object_file
from modelc.kernels.target_features import with_features
from tests.kernels.test_dot import dots

# Of AArch64's instructions on vectors what is left without the registers. Source: Arm's architecture manual.
VECTOR_OPERATION, SMULL, SDOT = 0xFFE0FC00, 0x0E20C000, 0x4E809400


@pytest.fixture(scope="module")
def dots_ir() -> tuple[str, str]:
    return lowered(kernel(dots.py_func), OPCODE_ARGS)  # other tests compile `dots` itself


def code_for(ir: tuple[str, str], triple: str, cpu: str, features: str, level: int = 3) -> bytes:
    symbol, text = ir
    return object_file(text, symbol, Processor(triple, cpu, features), "dots", level)


def test_the_ir_has_every_way_and_the_features_choose_one(dots_ir: tuple[str, str]) -> None:
    _, text = dots_ir
    assert "vpdpbusd.512" in text
    assert "pmadd.wd" in text
    for features, answer in (({"avx512vnni"}, "true"), (set(), "false")):
        chosen = with_features(text, features)
        definition = chosen[chosen.index("@modelc.has.avx512vnni() ") :].partition("}")[0]
        assert f"ret i1 {answer}" in definition


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


def test_what_a_user_compiles_with_numba_is_optimised_and_loaded_as_ever(dots_ir: tuple[str, str]) -> None:
    import numba

    assert dots_ir
    twice = numba.njit(lambda x: 2 * x)
    assert twice(21) == 42
    (compiled,) = twice.overloads.values()
    assert compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name) > 0
