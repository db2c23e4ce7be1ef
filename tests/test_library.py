import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import modelc
from modelc.store import Store
from tests.formats.gguf_builder import GGML_F32, Gguf, small_gguf


@pytest.fixture
def gguf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MODELC_STORE", str(tmp_path / "store"))
    path = tmp_path / "Tiny.gguf"
    path.write_bytes(small_gguf().build())
    return path


@pytest.mark.parametrize("name", modelc.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(modelc, name) is not None
    assert name in dir(modelc)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'modelc' has no attribute 'laod'"):
        modelc.laod  # noqa: B018


def test_importing_modelc_imports_nothing_heavy() -> None:
    code = "import sys, modelc; sys.exit(bool({'numpy', 'numba', 'cyclopts', 'litestar'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_pack_writes_a_file_or_a_version_in_the_store(gguf: Path, tmp_path: Path) -> None:
    output = modelc.pack(gguf, tmp_path / "out.modelc", name="x", compress=True)
    assert (output, modelc.inspect(output).compression) == (tmp_path / "out.modelc", "zstd")
    stored = modelc.pack(str(gguf))
    assert stored == tmp_path / "store" / "tiny.v1.modelc"
    assert modelc.pack(gguf, store=Store(tmp_path / "other")) == tmp_path / "other" / "tiny.v1.modelc"


def test_inspect_finds_the_same_in_the_source_and_the_packed_file(gguf: Path, tmp_path: Path) -> None:
    source, packed = modelc.inspect(gguf), modelc.inspect(modelc.pack(gguf, tmp_path / "out.modelc"))
    assert source.tensors == packed.tensors
    assert source.metadata == packed.metadata
    assert (source.parameters, source.total_bytes) == (packed.parameters, packed.total_bytes) == (75, 106)


def test_load_takes_names_and_weights_files(gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, dict[str, Any]]] = []
    monkeypatch.setattr("modelc.runtime.load", lambda path, **options: calls.append((path, options)))
    monkeypatch.setattr("modelc.resolve.cache_folder", lambda: tmp_path / "cache")
    modelc.pack(gguf)
    modelc.load("tiny", threads=2, kv="f32")
    modelc.load(gguf, activations="int16", max_context=99, anchor_tokens=4, kv_memory=5000, gamma=3, kv_hot_window=9)
    (packed,) = (tmp_path / "cache" / "packed").glob("*.modelc")
    (first, defaults), (second, options) = calls
    assert (first, second) == (tmp_path / "store" / "tiny.modelc", packed)
    assert defaults == {
        "threads": 2,
        "activations": "int8",
        "kv": "f32",
        "kv_hot_window": 64,
        "max_context": None,
        "anchor_tokens": 0,
        "kv_memory": None,
        "gamma": 0,
        "progress": None,
    }
    asked = {
        "activations": "int16",
        "max_context": 99,
        "anchor_tokens": 4,
        "kv_memory": 5000,
        "gamma": 3,
        "kv_hot_window": 9,
    }
    assert options == {**defaults, **asked, "threads": None, "kv": None}


def test_the_tokenizers_metadata_are_taken_from_a_file_also_under_their_old_key(gguf: Path) -> None:
    found = modelc.extract_tokenizer_metadata(gguf)
    assert set(found) == {
        "tokenizer.ggml.tokens",
        "tokenizer.ggml.scores",
        "tokenizer.flags",
        "tokenizer.chat_template",
    }
    old = Gguf().text("general.architecture", "llama").strings("tokenizer.ggml.vocab", ["a", "b"])
    gguf.write_bytes(old.tensor("x", [8], GGML_F32, bytes(32)).build())
    assert modelc.extract_tokenizer_metadata(gguf) == {"tokenizer.ggml.tokens": ["a", "b"]}
