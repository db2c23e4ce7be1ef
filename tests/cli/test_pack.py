import errno
import os
from pathlib import Path

import pytest

from modelc.formats.modelc import read_header
from modelc.store import Store
from tests.cli.conftest import Modelc


def test_pack_puts_the_model_into_the_store_under_its_files_name(modelc: Modelc, gguf: Path, tmp_path: Path) -> None:
    result = modelc("pack", gguf)
    packed = tmp_path / "store" / "tiny-model.v1.modelc"
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"packed {packed} (")
    assert Store(tmp_path / "store").find("tiny-model").samefile(packed)
    assert read_header(packed).name == "tiny-model"


def test_quiet_prints_the_path_alone(modelc: Modelc, gguf: Path, tmp_path: Path) -> None:
    assert modelc("pack", gguf, "--quiet").out == f"{tmp_path / 'store' / 'tiny-model.v1.modelc'}\n"


def test_pack_of_the_same_name_adds_the_next_version(modelc: Modelc, gguf: Path, tmp_path: Path) -> None:
    for _ in range(2):
        assert modelc("pack", gguf, "--name", "tiny").code == 0
    first, second = Store(tmp_path / "store").get("tiny").versions.values()
    assert first.read_bytes() == second.read_bytes()


def test_pack_with_output_writes_that_file_and_no_other(modelc: Modelc, gguf: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.modelc"
    assert modelc("pack", gguf, "-o", output, "--arch", "gpt2").code == 0
    assert read_header(output).architecture == "gpt2"
    assert not (tmp_path / "store").exists()


def test_pack_compresses_when_told_or_configured(
    modelc: Modelc, gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compression(*flags: str) -> str:
        assert modelc("pack", gguf, "-o", tmp_path / "out.modelc", *flags).code == 0
        return read_header(tmp_path / "out.modelc").compression

    assert (compression(), compression("--compress")) == ("none", "zstd")
    monkeypatch.setenv("MODELC_COMPRESSION", "zstd")
    assert (compression(), compression("--no-compress")) == ("zstd", "none")


def test_pack_into_another_store(modelc: Modelc, gguf: Path, tmp_path: Path) -> None:
    assert modelc("pack", gguf, "--store", tmp_path / "other").code == 0
    assert [model.name for model in Store(tmp_path / "other").models()] == ["tiny-model"]


def test_pack_of_a_missing_file_names_the_nearest(modelc: Modelc, gguf: Path) -> None:
    result = modelc("pack", gguf.with_name("Tiny-Modle.gguf"))
    assert result.code == 1
    assert "did you mean 'Tiny-Model.gguf'?" in result.err


@pytest.mark.parametrize("damage", ["truncated", "empty", "html"])
def test_pack_of_a_damaged_file_is_one_line_and_leaves_nothing(
    modelc: Modelc, gguf: Path, tmp_path: Path, damage: str
) -> None:
    whole = gguf.read_bytes()
    gguf.write_bytes({"truncated": whole[:-40], "empty": b"", "html": b"<!doctype html><p>404"}[damage])
    result = modelc("pack", gguf)
    assert (result.code, result.out) == (1, "")
    assert str(gguf) in result.err
    assert result.err.count("\n") == 1
    assert Store(tmp_path / "store").models() == []
    assert [path.name for path in (tmp_path / "store").iterdir()] == []


def test_pack_with_a_wrong_name_is_a_usage_error(modelc: Modelc, gguf: Path, tmp_path: Path) -> None:
    result = modelc("pack", gguf, "--name", "../up")
    assert result.code == 2
    assert "not a name for a model: 'name': got '../up'" in result.err
    assert not (tmp_path / "store").exists()


def test_pack_into_a_folder_that_does_not_exist_says_so(modelc: Modelc, gguf: Path, tmp_path: Path) -> None:
    result = modelc("pack", gguf, "-o", tmp_path / "no" / "out.modelc")
    assert result.code == 2
    assert f"create {tmp_path / 'no'} first" in result.err


def test_a_full_disk_is_one_line_and_leaves_nothing(
    modelc: Modelc, gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = modelc("pack", gguf)
    assert result.code == 1
    assert "No space left on device" in result.err
    assert [path.name for path in (tmp_path / "store").iterdir()] == []
