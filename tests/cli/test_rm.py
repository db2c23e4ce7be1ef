from pathlib import Path

from tests.cli.conftest import Modelc


def test_rm_refuses_while_versions_exist(modelc: Modelc, gguf: Path) -> None:
    modelc("pack", gguf, "--name", "tiny")
    result = modelc("rm", "tiny")
    assert (result.code, result.out) == (1, "")
    assert "--all" in result.err
    assert "--force" in result.err


def test_rm_names_what_it_deleted(modelc: Modelc, gguf: Path, tmp_path: Path) -> None:
    modelc("pack", gguf, "--name", "tiny")
    store = tmp_path / "store"
    assert modelc("rm", "tiny", "--force").out == f"deleted {store / 'tiny.modelc'}\n"
    assert modelc("rm", "tiny", "--all").out == f"deleted {store / 'tiny.v1.modelc'}\n"
    result = modelc("rm", "tiny", "--all")
    assert result.code == 1
    assert "no model 'tiny' in the store" in result.err
