import json
from pathlib import Path

import pytest

from tests.cli.conftest import Modelc


@pytest.fixture
def packed(modelc: Modelc, gguf: Path, tmp_path: Path) -> Path:
    assert modelc("pack", gguf, "-o", tmp_path / "tiny.modelc").code == 0
    return tmp_path / "tiny.modelc"


def flip_last_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_verify_says_that_a_whole_file_is_whole(modelc: Modelc, packed: Path) -> None:
    result = modelc("verify", packed)
    assert result.code == 0
    assert result.out.startswith(f"{packed}: 3 tensors, ")
    assert json.loads(modelc("verify", packed, "--json").out) == {"path": str(packed), "ok": True, "tensors": 3}


def test_quiet_leaves_the_answer_to_the_exit_code(modelc: Modelc, packed: Path) -> None:
    result = modelc("verify", packed, "-q")
    assert (result.code, result.out, result.err) == (0, "", "")


def test_verify_names_the_tensor_of_a_flipped_bit(modelc: Modelc, packed: Path) -> None:
    flip_last_bit(packed)
    result = modelc("verify", packed)
    assert (result.code, result.out) == (1, "")
    assert "tensor 'output_norm.weight'" in result.err


def test_verify_as_json_tells_failure_by_content_and_exit_code(modelc: Modelc, packed: Path) -> None:
    flip_last_bit(packed)
    result = modelc("verify", packed, "--json")
    found = json.loads(result.out)
    assert (result.code, found["ok"], found["tensor"]) == (1, False, "output_norm.weight")


def test_verify_takes_a_name_in_the_store(modelc: Modelc, gguf: Path) -> None:
    modelc("pack", gguf, "--name", "tiny")
    assert modelc("verify", "tiny:1").code == 0
