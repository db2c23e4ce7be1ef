"""Safetensors files: what is written is what the format's own package reads."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

from modelc.dtypes import DTYPES
from modelc.errors import BadFileError
from modelc.formats import safetensors, safetensors_writer
from modelc.ir import JSON, Model, Tensor
from modelc.layout import dequantize, to_lanes

Q4_0, F32, F16 = DTYPES["q4_0"], DTYPES["f32"], DTYPES["f16"]
BLOCKS = np.random.default_rng(0).integers(0, 100, 40 * 2 * 18, np.uint8)  # no scale among them is NaN


def make_model(**metadata: JSON) -> Model:
    tensors = {
        "bias": Tensor("bias", F16, (3,), np.array([1, 2, 3], np.float16).view(np.uint8)),
        "flag": Tensor("flag", DTYPES["bool"], (), np.array([1], np.uint8)),
        "packed": Tensor("packed", Q4_0, (40, 64), to_lanes(Q4_0, BLOCKS, 40, 64), "lanes"),
        "plain": Tensor("plain", Q4_0, (2, 20, 64), BLOCKS),
    }
    return Model("tiny", "llama", "gguf", metadata, tensors)


@pytest.mark.parametrize("floats", ["f32", "f16"])
def test_another_reader_finds_blocks_as_floats_and_all_else_as_it_was(tmp_path: Path, floats: str) -> None:
    path = tmp_path / "a.safetensors"
    safetensors_writer.write(make_model(), path, DTYPES[floats])
    expected = dequantize(Q4_0, BLOCKS, (40, 64)).astype(DTYPES[floats].numpy)
    with safe_open(path, "np") as file:
        assert sorted(file.keys()) == ["bias", "flag", "packed", "plain"]
        assert file.get_tensor("bias").tolist() == [1, 2, 3]
        assert file.get_tensor("bias").dtype == np.float16
        assert file.get_tensor("flag").tolist() is True
        assert np.array_equal(file.get_tensor("packed"), expected)
        assert file.get_tensor("packed").dtype == expected.dtype
        assert np.array_equal(file.get_tensor("plain"), expected.reshape(2, 20, 64))


def test_large_tensors_are_written_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    safetensors_writer.write(make_model(), tmp_path / "a.safetensors", F32)
    monkeypatch.setattr(safetensors_writer, "CHUNK_BYTES", 1)
    safetensors_writer.write(make_model(), tmp_path / "b.safetensors", F32)
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()


def test_metadata_are_strings_or_json(tmp_path: Path) -> None:
    metadata: dict[str, JSON] = {"text": "ä", "number": 3, "list": ["a", 1.5], "bytes": "\udcff"}
    safetensors_writer.write(make_model(**metadata), tmp_path / "a.safetensors", F32)
    found = safetensors.read(tmp_path / "a.safetensors").metadata
    assert {key: found[key] for key in metadata if key != "bytes"} == {"text": "ä", "number": 3, "list": ["a", 1.5]}
    content = (tmp_path / "a.safetensors").read_bytes()
    stored = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]
    assert (stored["number"], stored["list"]) == ("3", '["a", 1.5]')
    assert (found["general.name"], found["general.architecture"], found["format"]) == ("tiny", "llama", "pt")


def test_the_data_are_aligned_and_progress_ends_at_the_total(tmp_path: Path) -> None:
    calls: list[tuple[int, int, str]] = []
    path = tmp_path / "a.safetensors"
    safetensors_writer.write(make_model(), path, F32, lambda *call: calls.append(call))
    header_bytes = int.from_bytes(path.read_bytes()[:8], "little")
    assert header_bytes % 8 == 0
    assert calls[-1][:2] == (6 + 1 + 2 * 40 * 64 * 4,) * 2
    assert path.stat().st_size == 8 + header_bytes + calls[-1][1]


def test_a_value_that_float16_cannot_hold_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    block = np.float16(60000).tobytes() + bytes(16)
    model = make_model()
    model.tensors["plain"] = Tensor("plain", Q4_0, (1, 1, 32), np.frombuffer(block, np.uint8))
    with pytest.raises(BadFileError, match="tensor 'plain'"):
        safetensors_writer.write(model, tmp_path / "a.safetensors", F16)
    assert list(tmp_path.iterdir()) == []
