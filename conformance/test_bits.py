"""Logits and answers of SmolLM2, the same bits over threads, cuts, batches, kept prefixes, speculation and CPUs."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

from modelc import runtime
from modelc.formats import open_model
from modelc.kernels.env import PAGE
from modelc.kernels.objects import ObjectCache
from modelc.models import lower
from modelc.program import Builder
from modelc.runtime.engine import Engine, Rows

pytestmark = pytest.mark.slow

IDS = np.random.default_rng(1).integers(0, 49000, 100).tolist()
CUTS = ([64, 36], [1] * 100, [7, 13, 50, 30], [2, 3, 4, 5, 6, 8, 9, 10, 53])
N_CTX = 512
SSE = "sse,sse2,sse3,ssse3,sse4.1,sse4.2,popcnt,cx16"
AVX2 = SSE + ",avx,avx2,fma,f16c,bmi,bmi2,lzcnt,movbe"
AVX512 = AVX2 + ",avx512f,avx512bw,avx512vl,avx512dq,avx512cd"
ISAS = {"generic": ("x86-64-v2", SSE), "avx2": ("x86-64-v3", AVX2), "avx512": ("x86-64-v4", AVX512)}


def engine_of(path: Path, threads: int, activation: str) -> Engine:
    lowered = lower(open_model(path))
    program = lowered.program(Builder(256, 64, threads, N_CTX, activation))
    engine = Engine(program, lowered.weights.base, 4, 4 * N_CTX // PAGE, ObjectCache())
    engine.weights = lowered.weights  # type: ignore[attr-defined]
    for slot in range(4):
        engine.pages[slot] = np.arange(N_CTX // PAGE) + slot * N_CTX // PAGE
    return engine


def logits_of(engine: Engine, cuts: list[int]) -> np.ndarray:
    out, first = [], 0
    for n in cuts:
        out.append(engine.run([Rows(1, first, IDS[first : first + n], n)]).copy())
        first += n
    return np.concatenate(out)


def digest(logits: np.ndarray) -> str:
    return hashlib.blake2b(logits.tobytes(), digest_size=16).hexdigest()


@pytest.mark.parametrize("activation", ["a8", "a16"])
def test_threads_cuts_and_batches_do_not_change_a_bit(smollm2_gguf: Path, activation: str) -> None:
    digests, rows = set(), set()
    for threads in (1, 2, 3):
        engine = engine_of(smollm2_gguf, threads, activation)
        for cuts in CUTS:
            logits = logits_of(engine, cuts)
            digests.add(digest(logits))
        engine.run([Rows(0, 0, IDS[:40], 0), Rows(2, 0, IDS[5:60], 0)])
        mixed = engine.run([Rows(0, 40, IDS[40:41], 1), Rows(2, 55, IDS[60:61], 1), Rows(3, 0, IDS[:33], 5)])
        rows.update((digest(mixed[0]) == digest(logits[40]), digest(mixed[6]) == digest(logits[32])))
        engine.close()
    assert len(digests) == 1
    assert rows == {True}


@pytest.mark.parametrize("isa", ISAS)
def test_instruction_sets_do_not_change_a_bit(smollm2_gguf: Path, isa: str) -> None:
    cpu, features = ISAS[isa]
    if missing := [f for f in features.split(",") if not llvm.get_host_cpu_features().get(f)]:
        pytest.skip(f"this CPU has no {', '.join(missing)}")
    environment = {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": ",".join(f"+{f}" for f in features.split(","))}
    command = [sys.executable, "-m", "conformance.test_bits", str(smollm2_gguf)]
    root = Path(__file__).parent.parent
    digests = [
        subprocess.run(command, env={**os.environ, **e}, cwd=root, capture_output=True, text=True, check=True).stdout
        for e in ({}, environment)
    ]
    assert digests[0] == digests[1] != ""


def test_speculation_sharing_and_kept_prefixes_do_not_change_an_answer(smollm2_gguf: Path) -> None:
    prompts = ["Once upon a time", "List: 1, 2, 3, 4, 5, 6,", "A B A B A B A B A B", "def fibonacci(n):\n    if n < 2:"]
    settings = [{"temperature": 0.0}, {"temperature": 0.8, "seed": 7, "repetition_penalty": 1.1}]
    answers = []
    for gamma in (0, 5):
        with runtime.load(smollm2_gguf, gamma=gamma) as model:
            for _ in range(2):  # the second time from kept prefixes
                answers.append([model.generate(p, max_tokens=40, **s) for p in prompts for s in settings])
    assert all(answer == answers[0] for answer in answers)


if __name__ == "__main__":
    engine = engine_of(Path(sys.argv[1]), 2, "a8")
    print(digest(logits_of(engine, [40, 60])))
    engine.close()
