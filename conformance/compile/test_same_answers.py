"""Compiled files answer as `run` does: SmolLM2 with every instruction set and 1 to 3 threads, other kinds of models."""

import sys
from pathlib import Path

import onnx
import pytest

import modelc
from modelc.cli import main
from modelc.formats.modelc import write
from tests.onnx.test_runner import everything
from tests.runtime.tiny_mlp import mlp_of

pytestmark = pytest.mark.slow

HF = Path(__file__).parents[2] / "tests" / "data" / "hf"


@pytest.fixture(scope="module")
def compiled(smollm2_gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compiled") / "smollm2.pyz"
    assert main(["compile", str(smollm2_gguf), "-o", str(path)]) == 0
    return path


def test_every_byte_is_the_same(smollm2_gguf: Path, compiled: Path, isa: str) -> None:
    assert main(["conform", str(smollm2_gguf), str(compiled), "--isa", isa, "--threads", "1,2,3"]) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="executables are Linux's")
def test_an_executable_of_its_own_answers_the_same(smollm2_gguf: Path, tmp_path: Path) -> None:
    path = tmp_path / "smollm2"
    assert main(["compile", str(smollm2_gguf), "-o", str(path), "--format", "elf"]) == 0
    assert path.stat().st_size - smollm2_gguf.stat().st_size < 36_000_000
    assert main(["conform", str(smollm2_gguf), str(path)]) == 0


def check_both_formats(model: Path, folder: Path) -> None:
    for format in ("pyz", "elf") if sys.platform == "linux" else ("pyz",):
        path = folder / f"compiled.{format}"
        assert main(["compile", str(model), "-o", str(path), "--format", format]) == 0
        assert main(["conform", str(model), str(path), "--threads", "1,2"]) == 0


@pytest.mark.parametrize("name", ["bert-tiny", "gemma3-tiny", "gpt2-tiny", "phi3-tiny"])
def test_checkpoints_answer_the_same(name: str, tmp_path: Path) -> None:
    check_both_formats(modelc.pack(HF / name, tmp_path / f"{name}.modelc"), tmp_path)


def test_a_perceptron_answers_the_same(tmp_path: Path) -> None:
    model = tmp_path / "perceptron.modelc"
    write(mlp_of({"layer0.weight": (70, 33), "layer0.bias": (70,), "layer1.weight": (5, 70)}), model)
    check_both_formats(model, tmp_path)


def test_a_graph_with_every_kind_of_instruction_answers_the_same(tmp_path: Path) -> None:
    onnx.save(everything()[0], tmp_path / "graph.onnx")
    check_both_formats(modelc.pack(tmp_path / "graph.onnx", tmp_path / "graph.modelc"), tmp_path)
