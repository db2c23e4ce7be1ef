"""One set of bits for all instruction sets: the generic build, AVX2, AVX-512 without VNNI, and this CPU."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from tests.kernels.stored_blocks import BLOCK_TYPES, FLOAT_TYPES

ROOT = Path(__file__).parents[2]

V2 = "sse,sse2,sse3,ssse3,sse4.1,sse4.2,popcnt,cx16"
V3 = V2 + ",avx,avx2,fma,f16c,bmi,bmi2,lzcnt,movbe"
V4 = V3 + ",avx512f,avx512bw,avx512vl,avx512dq,avx512cd"
# Name of the CPU for LLVM, and its features. VNNI is not part of v4, so v4 is AVX-512 without it.
ISAS = {
    "v2": ("x86-64-v2", V2),
    "v3": ("x86-64-v3", V3),
    "v3+vnni": ("x86-64-v3", V3 + ",avxvnni"),
    "v4": ("x86-64-v4", V4),
}

PARTS = ("conversions", "dots", "draws", "elementary", "encoder", "graph", "model:mixed.a8.f16")
ALL_PARTS = (
    *(f"model:{name}.a8.f16" for name in BLOCK_TYPES),
    *(f"model:{name}.a16.f32" for name in BLOCK_TYPES),
    *(f"model:{name}.a8.f32" for name in FLOAT_TYPES),
    "model:f32.a8.int8",
    "model:f32.a8.mixed",
)


def hashes(parts: tuple[str, ...], isa: str | None) -> dict[str, str]:
    """Hashes of the parts, computed by a fresh process on an instruction set; None is this CPU's own."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_CPU")}
    if isa is not None:
        name, features = ISAS[isa]
        missing = [f for f in features.split(",") if not llvm.get_host_cpu_features().get(f)]
        if missing:
            pytest.skip(f"this CPU has no {', '.join(missing)}")
        environment["NUMBA_CPU_NAME"] = name
        environment["NUMBA_CPU_FEATURES"] = ",".join(f"+{feature}" for feature in features.split(","))
    command = [sys.executable, "-W", "error", "-m", "tests.kernels.isa_hashes", *parts]
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    answer = json.loads(result.stdout)
    assert isa is None or answer["features"] == environment["NUMBA_CPU_FEATURES"]
    return dict(answer["hashes"])


@functools.cache
def native_hashes(parts: tuple[str, ...]) -> dict[str, str]:
    return hashes(parts, None)


@pytest.mark.parametrize("isa", ISAS)
def test_every_instruction_set_gives_the_same_bits(isa: str) -> None:
    assert hashes(PARTS, isa) == native_hashes(PARTS)


@pytest.mark.slow
@pytest.mark.parametrize("isa", ISAS)
def test_every_instruction_set_gives_the_same_bits_for_every_weight_type(isa: str) -> None:
    assert hashes(ALL_PARTS, isa) == native_hashes(ALL_PARTS)
