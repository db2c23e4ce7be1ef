import zipfile
from pathlib import Path

from tests.cli.conftest import Modelc
from tests.container.stand_in import compiled_file


def test_a_stored_model_becomes_a_folder_for_docker(modelc: Modelc, gguf: Path, tmp_path: Path) -> None:
    modelc("pack", gguf, "--name", "tiny")
    folder = tmp_path / "image"
    result = modelc("containerize", "tiny:1", "-o", folder, "--kubernetes")
    assert (result.code, result.err) == (0, "")
    assert f"wrote {folder}/Dockerfile\n" in result.out
    assert f"  docker build -t tiny:0.1.0 {folder}\n" in result.out
    assert result.out.endswith(f"  kubectl apply -f {folder}/kubernetes\n")
    assert modelc("containerize", "tiny", "-o", folder).err == (
        f"modelc: this folder has something in it: {folder}; name a new one with -o\n"
    )


def test_a_weights_file_is_packed_on_the_way(modelc: Modelc, gguf: Path, tmp_path: Path) -> None:
    assert "docker build -t tiny-model:" in modelc("containerize", gguf, "-o", tmp_path / "image").out
    assert (tmp_path / "image" / "model.modelc").exists()


def test_a_compiled_file_is_taken_and_another_archive_is_not(modelc: Modelc, gguf: Path, tmp_path: Path) -> None:
    modelc("pack", gguf, "-o", tmp_path / "tiny.modelc")
    compiled = compiled_file(tmp_path / "model-serve.pyz", (tmp_path / "tiny.modelc").read_bytes())
    assert modelc("containerize", compiled, "-o", tmp_path / "image").code == 0
    assert not (tmp_path / "image" / "modelc").exists()
    with zipfile.ZipFile(tmp_path / "other.pyz", "w") as archive:
        archive.writestr("__main__.py", "")
    result = modelc("containerize", tmp_path / "other.pyz", "-o", tmp_path / "second")
    assert result.code == 1
    assert result.err.count("\n") == 1
    assert not (tmp_path / "second").exists()
