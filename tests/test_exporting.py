from pathlib import Path

import gguf as other_gguf
import numpy as np
import pytest

from modelc.errors import BadInputError, NotFoundError, UnsupportedError
from modelc.exporting import export
from modelc.formats import gguf, safetensors
from modelc.packing import pack
from modelc.quantizing import Quantization
from tests.formats.gguf_builder import GGML_F32, Gguf, small_gguf

HF_CASES = Path(__file__).parent / "data" / "hf"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(small_gguf().build())
    return path


@pytest.mark.parametrize("compress", [False, True])
def test_a_packed_gguf_comes_back_as_it_was(source: Path, tmp_path: Path, compress: bool) -> None:
    packed = pack(source, tmp_path / "tiny.modelc", compress=compress)
    before, after = gguf.read(source), gguf.read(export(packed, tmp_path / "out.gguf"))
    assert after.metadata == before.metadata
    for name, tensor in before.tensors.items():
        assert (after.tensors[name].dtype, after.tensors[name].shape) == (tensor.dtype, tensor.shape)
        assert np.array_equal(after.tensors[name].stored, tensor.stored)


def test_quantized_tensors_are_exported_as_they_were_packed(tmp_path: Path) -> None:
    values = np.random.default_rng(0).standard_normal((64, 256)).astype(np.float32)
    file = Gguf().text("general.architecture", "llama").tensor("w", [256, 64], GGML_F32, values.tobytes())
    (tmp_path / "a.gguf").write_bytes(file.build())
    packed = pack(tmp_path / "a.gguf", tmp_path / "a.modelc", quantization=Quantization.parse("q4_k", [], 0))
    tensor = gguf.read(export(packed, tmp_path / "b.gguf")).tensors["w"]
    assert tensor.dtype.name == "q4_k"
    floats = safetensors.read(export(packed, tmp_path / "b.safetensors")).tensors["w"].stored.view(np.float32)
    assert 0 < np.abs(floats - values.reshape(-1)).max() < 0.3


def test_a_real_models_metadata_keep_their_types(smollm2_gguf: Path, tmp_path: Path) -> None:
    packed = pack(smollm2_gguf, tmp_path / "smollm2.modelc")
    before, after = (other_gguf.GGUFReader(path) for path in (smollm2_gguf, export(packed, tmp_path / "out.gguf")))
    assert {key: field.types for key, field in after.fields.items()} == {
        key: field.types for key, field in before.fields.items()
    }
    tensors = {tensor.name: tensor for tensor in after.tensors}
    assert all(np.array_equal(tensors[tensor.name].data, tensor.data) for tensor in before.tensors)


def test_the_suffix_or_the_format_says_what_is_written(source: Path, tmp_path: Path) -> None:
    assert export(source, tmp_path / "a.SAFETENSORS").read_bytes()[8:9] == b"{"
    assert export(source, tmp_path / "a.bin", format="gguf").read_bytes()[:4] == b"GGUF"
    for output, format in (("a.bin", None), ("a.gguf", "onnx")):
        with pytest.raises(BadInputError, match="gguf or safetensors"):
            export(source, tmp_path / output, format=format)
    with pytest.raises(BadInputError, match="floats"):
        export(source, tmp_path / "a.safetensors", floats="q4_0")
    with pytest.raises(NotFoundError):
        export(tmp_path / "no.gguf", tmp_path / "b.gguf")


def test_a_hugging_face_model_gets_gguf_s_names_keys_and_tokenizer(tmp_path: Path) -> None:
    packed = pack(HF_CASES / "llama-tiny-gqa-untied", tmp_path / "tiny.modelc")
    model = gguf.read(export(packed, tmp_path / "tiny.gguf"))
    assert model.architecture == "llama"
    assert model.metadata["llama.attention.head_count_kv"] == 2
    assert model.metadata["tokenizer.ggml.model"] == "no_vocab"
    assert {"token_embd.weight", "blk.2.attn_q.weight", "output_norm.weight"} <= set(model.tensors)
    floats = safetensors.read(export(packed, tmp_path / "tiny.safetensors"))
    assert "model.embed_tokens.weight" in floats.tensors


def test_what_gguf_cannot_say_is_an_error_that_names_the_source(tmp_path: Path) -> None:
    source = HF_CASES / "qwen3-tiny"
    with pytest.raises(UnsupportedError, match=r"windows of some layers.*qwen3-tiny.*\(0, 16\)"):
        export(source, tmp_path / "b.gguf")
    assert not (tmp_path / "b.gguf").exists()


def test_the_source_is_not_replaced_by_its_export(source: Path) -> None:
    content = source.read_bytes()
    with pytest.raises(BadInputError, match="the output is the model itself"):
        export(source, source)
    assert source.read_bytes() == content
