"""A compiled SmolLM2 answers as `run` does, on every instruction set that this processor has, with 1 to 3 threads."""

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
