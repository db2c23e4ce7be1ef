"""A compiled SmolLM2 answers as `run` does, on every instruction set that this processor has, with 1 to 3 threads."""

import sys
from pathlib import Path

import pytest

from modelc.bundle.isas import host_features, host_machine, isas_of
from modelc.cli import main

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def compiled(smollm2_gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compiled") / "smollm2.pyz"
    assert main(["compile", str(smollm2_gguf), "-o", str(path)]) == 0
    return path


@pytest.mark.parametrize("isa", [isa.name for isa in isas_of(host_machine())])
def test_every_byte_is_the_same(smollm2_gguf: Path, compiled: Path, isa: str) -> None:
    (chosen,) = (each for each in isas_of(host_machine()) if each.name == isa)
    if missing := set(chosen.features) - host_features():
        pytest.skip(f"this processor has no {', '.join(sorted(missing))}")
    assert main(["conform", str(smollm2_gguf), str(compiled), "--isa", isa, "--threads", "1,2,3"]) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="executables are Linux's")
def test_an_executable_of_its_own_answers_the_same(smollm2_gguf: Path, tmp_path: Path) -> None:
    path = tmp_path / "smollm2"
    assert main(["compile", str(smollm2_gguf), "-o", str(path), "--format", "elf"]) == 0
    assert path.stat().st_size - smollm2_gguf.stat().st_size < 36_000_000
    assert main(["conform", str(smollm2_gguf), str(path)]) == 0
