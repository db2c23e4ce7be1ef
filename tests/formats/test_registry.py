import io
import json
import os
import zipfile
from pathlib import Path

import pytest

from modelc.errors import BadFileError, BadInputError, NotFoundError, UnsupportedError
from modelc.formats import FORMATS, detect, modelc, open_model
from tests.formats.gguf_builder import small_gguf
from tests.formats.modelc.artifacts import tiny_model


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
    with pytest.raises(BadFileError, match=r"unknown file format: .*weights: got .*; name it with -f"):
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


@pytest.mark.parametrize("format", [name for name, entry in FORMATS.items() if entry.read is None])
def test_a_format_without_a_reader_is_named(tmp_path: Path, format: str) -> None:
    path = tmp_path / f"x{FORMATS[format].suffixes[0]}"
    path.write_bytes(b"content")
    with pytest.raises(UnsupportedError, match=f"{FORMATS[format].title} files cannot be read: .*expected GGUF and"):
        open_model(path)


def test_a_folder_is_no_model_unless_it_holds_one(tmp_path: Path) -> None:
    with pytest.raises(
        BadFileError, match=r"no model in this folder: .*expected model\.safetensors; name a file in it"
    ):
        open_model(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text("{}")
    assert detect(tmp_path) == "safetensors"


@pytest.mark.parametrize("suffix", [".gguf", ".modelc"])
def test_what_is_no_file_is_one_clear_error(tmp_path: Path, suffix: str) -> None:
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
        (tmp_path / f"{'x' * 300}{suffix}", "the file cannot be read: .*too long"),
        (Path("/dev/null"), "this is a device"),
    ):
        with pytest.raises(BadFileError, match=message):
            open_model(path, suffix[1:])
        if path.suffix:
            with pytest.raises(BadFileError, match=message):
                open_model(path)
    with pytest.raises(BadFileError, match=r"this is a folder: .*; name a file in it"):
        open_model(folder, suffix[1:])
    with pytest.raises(NotFoundError, match=rf"no such file: .*; did you mean 'empty\{suffix}'\?"):
        open_model(missing)
