import io
import json
import os
import zipfile
from pathlib import Path

import pytest

from modelc.errors import BadFileError, BadInputError, NotFoundError
from modelc.formats import FORMATS, detect, files_of, modelc, open_model
from modelc.formats.folder import weights_in
from tests.formats.gguf_builder import small_gguf
from tests.formats.modelc.artifacts import tiny_model
from tests.formats.safetensors_builder import small_safetensors, write_shards


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.gguf", "gguf"),
        ("A.GGUF", "gguf"),
        ("a.modelc", "modelc"),
        ("a.safetensors", "safetensors"),
        ("a.onnx", "onnx"),
        ("a.pt", "pytorch"),
        ("a.pth", "pytorch"),
        ("pytorch_model.bin", "pytorch"),
    ],
)
def test_the_name_tells_the_format(name: str, format: str) -> None:
    assert detect(name) == format


def zip_bytes() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("x", "y")
    return buffer.getvalue()


def safetensors_bytes(header: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header


@pytest.mark.parametrize(
    ("content", "format"),
    [
        (small_gguf().build(), "gguf"),
        (b"MODELC\x1a\n", "modelc"),
        (zip_bytes(), "pytorch"),
        (safetensors_bytes(json.dumps({"__metadata__": {}}).encode()), "safetensors"),
    ],
)
def test_the_content_tells_the_format_when_the_name_does_not(tmp_path: Path, content: bytes, format: str) -> None:
    for name in ("weights", "weights.dat"):
        (tmp_path / name).write_bytes(content)
        assert detect(tmp_path / name) == format


@pytest.mark.parametrize(
    "content",
    [
        b"hello, world",
        safetensors_bytes(b"{no json"),
        safetensors_bytes(b"[]"),
        safetensors_bytes(b"{" * 5000),
        (1 << 63).to_bytes(8, "little") + b"{}",
    ],
)
def test_an_unknown_content_is_an_error_that_names_the_option(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "weights").write_bytes(content)
    with pytest.raises(BadFileError, match=r"unknown file format: .*weights: got .*; name it with -f of `modelc pack`"):
        detect(tmp_path / "weights")


def test_a_given_format_wins_over_the_name(tmp_path: Path) -> None:
    path = tmp_path / "tiny.bin"
    path.write_bytes(small_gguf().build())
    assert detect(path, "gguf") == "gguf"
    assert len(open_model(path, "gguf").tensors) == 3


def test_an_unknown_format_is_answered_with_a_near_one() -> None:
    with pytest.raises(BadInputError, match=r"unknown format: 'format': got ggfu.*; did you mean 'gguf'\?"):
        detect("a.gguf", "ggfu")


def test_both_formats_are_opened(tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf").write_bytes(small_gguf().build())
    modelc.write(tiny_model(), tmp_path / "tiny.modelc")
    assert len(open_model(tmp_path / "tiny.gguf").tensors) == 3
    assert len(open_model(str(tmp_path / "tiny.modelc")).tensors) == 4


# ---- folders


def test_a_folder_with_a_checkpoint_is_read_and_gives_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "Tiny-0.5B"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "llama"}')
    write_shards(folder)
    (folder / "pytorch_model.bin").write_bytes(b"not looked at")
    assert detect(folder) == "safetensors"
    model = open_model(folder)
    assert (model.name, model.architecture, list(model.tensors)) == ("Tiny-0.5B", "llama", ["a", "b"])


def test_a_folder_may_be_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "model.safetensors").write_bytes(small_safetensors())
    monkeypatch.chdir(tmp_path / "here")
    assert open_model(".").name == "here"


@pytest.mark.parametrize(
    ("names", "chosen", "format"),
    [
        (["model.safetensors", "model.safetensors.index.json", "model.onnx"], "model.safetensors", "safetensors"),
        (["pytorch_model.bin", "training_args.bin", "x.gguf"], "pytorch_model.bin", "pytorch"),
        (["pytorch_model.bin.index.json", "x.gguf"], "pytorch_model.bin.index.json", "pytorch"),
        (["model.onnx", "other.onnx"], "model.onnx", "onnx"),
        (["weights.safetensors", "config.json", "a.gguf", "b.gguf"], "weights.safetensors", "safetensors"),
        (["Q4.GGUF", "README.md"], "Q4.GGUF", "gguf"),
        (["q-00002-of-00002.gguf", "q-00001-of-00002.gguf"], "q-00001-of-00002.gguf", "gguf"),
        (["only.pth"], "only.pth", "pytorch"),
    ],
)
def test_the_weights_of_a_folder_are_told_from_the_names(
    tmp_path: Path, names: list[str], chosen: str, format: str
) -> None:
    for name in names:
        (tmp_path / name).write_bytes(b"{}")
    assert weights_in(tmp_path) == (tmp_path / chosen, format)
    assert detect(tmp_path) == format


def test_an_index_of_another_name_is_found_by_its_shards(tmp_path: Path) -> None:
    index = write_shards(tmp_path, "transformer")
    assert weights_in(tmp_path) == (index, "safetensors")


def test_a_given_format_chooses_among_the_weights_of_a_folder(tmp_path: Path) -> None:
    for name in ("model.safetensors", "pytorch_model.bin", "x.gguf"):
        (tmp_path / name).touch()
    assert weights_in(tmp_path, "gguf") == (tmp_path / "x.gguf", "gguf")
    assert weights_in(tmp_path, "pytorch") == (tmp_path / "pytorch_model.bin", "pytorch")
    with pytest.raises(BadFileError, match="no model in this folder"):
        weights_in(tmp_path, "onnx")


def test_a_folder_without_one_model_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(
        BadFileError, match=r"no model in this folder: .*expected model\.safetensors; name a file in it"
    ):
        open_model(tmp_path)
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).touch()
    with pytest.raises(BadFileError, match=r"several models in this folder: .*got a\.gguf, b\.gguf; name a file in it"):
        open_model(tmp_path)


def test_all_files_of_a_model_are_told(tmp_path: Path) -> None:
    index = write_shards(tmp_path)
    for name in ("config.json", "README.md", "x-00001-of-00002.gguf", "x-00002-of-00002.gguf", "x.bin"):
        (tmp_path / name).write_text("{}")
    shards = [tmp_path / f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    whole = [index, *shards, tmp_path / "config.json"]
    assert files_of(tmp_path) == files_of(index) == files_of(shards[1]) == whole
    parts = [tmp_path / f"x-0000{number}-of-00002.gguf" for number in (1, 2)]
    assert files_of(parts[1]) == parts
    assert files_of(tmp_path / "x.bin") == [tmp_path / "x.bin", tmp_path / "config.json"]


def test_no_suffix_of_an_index_is_needed(tmp_path: Path) -> None:
    assert detect(tmp_path / "model.safetensors.index.json") == "safetensors"
    assert detect(tmp_path / "pytorch_model.bin.index.json") == "pytorch"


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_no_file_is_one_clear_error(tmp_path: Path, format: str) -> None:
    suffix = FORMATS[format].suffixes[0]
    folder, empty, pipe, missing = (tmp_path / f"{name}{suffix}" for name in ("folder", "empty", "pipe", "emty"))
    folder.mkdir()
    empty.touch()
    os.mkfifo(pipe)
    (tmp_path / f"loop{suffix}").symlink_to(tmp_path / f"loop{suffix}")
    for path, message in (
        (empty, "the file is empty: .*download it again"),
        (pipe, "this is a device or a pipe"),
        (tmp_path / f"loop{suffix}", "the file cannot be read: .*symbolic links"),
        (Path(f"nul\0{suffix}"), "the file cannot be read: .*null byte"),
        (tmp_path / f"{'x' * 300}-00001-of-00002{suffix}", "the file cannot be read: .*too long"),
        (Path("/dev/null"), "this is a device"),
    ):
        with pytest.raises(BadFileError, match=message):
            open_model(path, format)
        if path.suffix:
            with pytest.raises(BadFileError, match=message):
                open_model(path)
    with pytest.raises(BadFileError, match=r"no model in this folder: .*; name a file in it"):
        open_model(folder, format)
    with pytest.raises(NotFoundError, match=rf"no such file: .*; did you mean 'empty\{suffix}'\?"):
        open_model(missing)
