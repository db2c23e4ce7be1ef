"""Files that are compiled here for AArch64 answer there as `run` does here; there is QEMU's emulation of one user."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx
import pytest

import modelc
from conformance.compile import logits
from conformance.compile.aarch64 import PROCESSORS, Machine, Unavailable, machine
from modelc.bundle.isas import AARCH64, isas_of
from modelc.cli import main
from modelc.conforming import Served, compare, requests_for
from modelc.conforming.comparison import answers_of
from modelc.conforming.requests import Request
from modelc.formats.modelc import write
from modelc.kernels.objects import ObjectCache
from tests.models.tiny_draft import with_random_draft
from tests.models.tiny_llama import tiny_llama
from tests.onnx.test_runner import everything
from tests.runtime.tiny_mlp import mlp_of

pytestmark = pytest.mark.slow

HF = Path(__file__).parents[2] / "tests" / "data" / "hf"
ISAS = [isa.name for isa in isas_of(AARCH64)]
THREADS = (1, 2, 3)
# Checkpoints, and the type that their matrices get.
CHECKPOINTS = {
    "bert-tiny": None,
    "gemma3-tiny": "q8_0",
    "gpt2-tiny": None,
    "llama-tiny-gqa-untied": "q4_0",
    "phi3-tiny": "q5_1",
    "qwen3-tiny": "bf16",
}
# Together every block and float type.
OF_256 = {"": "q4_k", "attn_v": "q6_k", "attn_output": "q2_k", "ffn_gate": "q3_k", "ffn_up": "q5_k"}
OF_256 |= {"ffn_down": "iq4_xs", "token_embd": "q8_0"}
OF_32 = {"": "q4_0", "attn_v": "q5_0", "attn_output": "q4_1", "ffn_gate": "q5_1", "ffn_up": "iq4_nl"}
OF_32 |= {"ffn_down": "f16", "token_embd": "bf16"}
OF_SMOLLM2 = (
    "/chat sampling 0",
    "/v1/completions sampling 1",
    "/v1/chat/completions sampling 2, streamed",
    "/v1/completions scored",
    "/complete a regular expression",
    "/embeddings texts",
)


@pytest.fixture(scope="session")
def emulated() -> Machine:
    try:
        return machine()
    except Unavailable as reason:
        pytest.skip(f"no AArch64 to run on: {reason}")


@pytest.fixture(scope="module")
def smollm2(smollm2_gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(smollm2_gguf, tmp_path_factory.mktemp("smollm2"))


def compiled(model: Path, folder: Path) -> Path:
    output = folder / f"{model.name}.pyz"
    assert main(["compile", str(model), "-o", str(output), "--target", "aarch64-linux"]) == 0
    return output


def check(
    model: Path, file: Path, emulated: Machine, requests: Sequence[Request], threads: Sequence[int] = THREADS
) -> Mapping[int, int]:
    """Compare the answers of `run` here with those of the file there, with every instruction set; gives statuses."""
    with Served([sys.executable, "-m", "modelc", "run", str(model)]) as here:
        expected = answers_of(here, requests)
    for isa in ISAS:
        for count in threads:
            options = ["--isa", isa, "--threads", str(count)]
            with Served([*emulated.python(PROCESSORS[isa]), str(file), *options]) as there:
                report = compare(expected, there, requests)
            assert report.differences == [], f"{isa}, {count} threads"
    return report.statuses


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_checkpoints_answer_the_same(emulated: Machine, tmp_path: Path, name: str) -> None:
    model = modelc.pack(HF / name, tmp_path / f"{name}.modelc", quantize=CHECKPOINTS[name])
    requests = requests_for(64, max_tokens=6)
    assert check(model, compiled(model, tmp_path), emulated, requests)[200] > 10


def test_a_perceptron_answers_the_same(emulated: Machine, tmp_path: Path) -> None:
    model = tmp_path / "perceptron.modelc"
    write(mlp_of({"layer0.weight": (70, 33), "layer0.bias": (70,), "layer1.weight": (5, 70)}), model)
    file = compiled(model, tmp_path)
    assert check(model, file, emulated, requests_for(33))[200] > 5
    with Served([*emulated.python(), str(file), "--profile"]) as profiled:
        answer = profiled.ask(Request("profiled", "POST", "/infer", {"input": [0.5] * 33}))
    assert answer.status == 200


def test_a_graph_with_every_kind_of_instruction_answers_the_same(emulated: Machine, tmp_path: Path) -> None:
    proto, feeds = everything()
    onnx.save(proto, tmp_path / "graph.onnx")
    model = modelc.pack(tmp_path / "graph.onnx", tmp_path / "graph.modelc")
    images = [(feeds["x"] * scale).tolist() for scale in (1, 0.5, -1)]  # recorded at the second, repeated at the third
    requests = [Request(f"image {number}", "POST", "/infer", {"input": x}) for number, x in enumerate(images)]
    assert check(model, compiled(model, tmp_path), emulated, requests, threads=(1, 3)) == {200: 3}


def test_smollm2_answers_the_same(emulated: Machine, smollm2_gguf: Path, smollm2: Path) -> None:
    requests = [request for request in requests_for(3, max_tokens=4) if request.name in OF_SMOLLM2]
    assert len(requests) == len(OF_SMOLLM2)
    assert check(smollm2_gguf, smollm2, emulated, requests, threads=(2,))[200] == len(OF_SMOLLM2)


def hashes(emulated: Machine, file: Path, isa: str, threads: int, n_tokens: int) -> dict[str, str]:
    program = [str(logits.__file__), str(file), isa, str(threads), str(n_tokens)]
    command = [*emulated.python(PROCESSORS[isa]), *program]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(result.stdout))


@pytest.mark.parametrize(("isa", "threads"), [("neon", 1), ("dotprod", 1), ("dotprod", 3)])
def test_smollm2_has_the_same_logits(
    emulated: Machine, smollm2_gguf: Path, smollm2: Path, isa: str, threads: int
) -> None:
    expected = logits.logit_hashes(smollm2_gguf, 1, ObjectCache(), 24)
    assert hashes(emulated, smollm2, isa, threads, 24) == expected


@pytest.mark.parametrize("types", [OF_256, OF_32], ids=["256 columns", "32 columns"])
def test_every_weight_type_has_the_same_logits(emulated: Machine, tmp_path: Path, types: dict[str, str]) -> None:
    model = tmp_path / "tiny.modelc"
    write(with_random_draft(tiny_llama(types, dim=256, n_heads=16, n_kv_heads=8, ffn_dim=256)), model)
    file = compiled(model, tmp_path)
    expected = logits.logit_hashes(model, 1, ObjectCache(), 100)
    for isa in ISAS:
        for threads in THREADS:
            assert hashes(emulated, file, isa, threads, 100) == expected, f"{isa}, {threads} threads"


def test_the_best_instruction_set_of_the_processor_is_taken_and_others_are_refused(
    emulated: Machine, smollm2: Path
) -> None:
    for isa, processor in PROCESSORS.items():
        said = subprocess.run([*emulated.python(processor), str(smollm2), "--info"], capture_output=True, check=True)
        assert json.loads(said.stdout)["isa"] == isa
    command = [*emulated.python(PROCESSORS["neon"]), str(smollm2), "--isa", "dotprod"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "this processor lacks it" in refused.stderr.splitlines()[-1]
