import json
from pathlib import Path

import numpy as np
import pytest

from modelc.errors import BadFileError, BadInputError, NotFoundError
from modelc.formats import gguf, modelc, open_model
from modelc.layout import plain_bytes
from modelc.packing import pack
from tests.formats.gguf_builder import GGML_F32, Gguf, small_gguf
from tests.formats.safetensors_builder import small_safetensors


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(small_gguf().build())
    return path


@pytest.mark.parametrize("compress", [False, True])
def test_nothing_of_the_source_is_lost(source: Path, tmp_path: Path, compress: bool) -> None:
    output = pack(source, tmp_path / "out.modelc", compress=compress)
    before, after = gguf.read(source), modelc.read(output)
    assert output == tmp_path / "out.modelc"
    assert (after.name, after.architecture, after.source_format) == ("tiny", "llama", "gguf")
    assert after.metadata == before.metadata
    assert list(after.tensors) == list(before.tensors)
    for name, tensor in after.tensors.items():
        assert (tensor.dtype, tensor.shape) == (before.tensors[name].dtype, before.tensors[name].shape)
        assert np.array_equal(plain_bytes(tensor), before.tensors[name].stored)
    assert modelc.verify(output).compression == ("zstd" if compress else "none")


def test_packing_twice_gives_the_same_bytes(source: Path, tmp_path: Path) -> None:
    outputs = [pack(source, tmp_path / f"{number}.modelc") for number in range(2)]
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


def test_a_packed_model_can_be_packed_again(source: Path, tmp_path: Path) -> None:
    first = pack(source, tmp_path / "first.modelc")
    second = pack(first, tmp_path / "second.modelc", compress=True)
    assert pack(second, tmp_path / "third.modelc").read_bytes() == first.read_bytes()
    assert modelc.read_header(second).source_format == "gguf"


def test_name_and_architecture_can_be_given(source: Path, tmp_path: Path) -> None:
    header = modelc.read_header(pack(source, tmp_path / "out.modelc", name="mine", arch="gpt2"))
    assert (header.name, header.architecture) == ("mine", "gpt2")
    assert header.metadata["general.architecture"] == "llama"


def test_the_format_can_be_given(source: Path, tmp_path: Path) -> None:
    misnamed = source.rename(tmp_path / "tiny.bin")
    with pytest.raises(BadFileError, match=r"not a PyTorch file: .*got a GGUF file, .*name the format with -f"):
        pack(misnamed, tmp_path / "out.modelc")
    assert pack(misnamed, tmp_path / "out.modelc", format="gguf").is_file()


def test_progress_reaches_the_total(source: Path, tmp_path: Path) -> None:
    calls: list[tuple[int, int, str]] = []
    pack(source, tmp_path / "out.modelc", progress=lambda *call: calls.append(call))
    assert len(calls) == 3
    assert calls[-1][0] == calls[-1][1] > 0


@pytest.mark.parametrize("param", ["name", "arch"])
def test_empty_names_are_refused(source: Path, tmp_path: Path, param: str) -> None:
    with pytest.raises(BadInputError, match=f"an empty name: '{param}'"):
        pack(source, tmp_path / "out.modelc", **{param: ""})


def test_a_source_without_tensors_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vocabulary.gguf").write_bytes(Gguf().text("general.architecture", "llama").build())
    with pytest.raises(BadFileError, match=r"the file has no tensors: .*vocabulary\.gguf"):
        pack(tmp_path / "vocabulary.gguf", tmp_path / "out.modelc")


def test_a_missing_source_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no such file"):
        pack(tmp_path / "x.gguf", tmp_path / "out.modelc")


def test_a_damaged_source_leaves_no_output(source: Path, tmp_path: Path) -> None:
    source.write_bytes(source.read_bytes()[:-1])
    with pytest.raises(BadFileError, match="runs past the end of the file"):
        pack(source, tmp_path / "out.modelc")
    assert [each.name for each in tmp_path.iterdir()] == ["tiny.gguf"]


def test_a_bad_output_is_an_error_before_anything_is_written(source: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="the output cannot be a file: 'output'"):
        pack(source, tmp_path)
    with pytest.raises(BadInputError, match=r"the output's folder does not exist: 'output'.*; create .*no first"):
        pack(source, tmp_path / "no" / "out.modelc")


def test_invalid_utf8_survives_packing(tmp_path: Path) -> None:
    odd = bytes(range(256)) + b"\xed\xb2\x80"
    file = Gguf().text("general.odd", odd).strings("tokenizer.ggml.tokens", [odd]).text("tokenizer.chat_template", odd)
    file.tensor(odd, [1], GGML_F32, bytes(4))
    (tmp_path / "odd.gguf").write_bytes(file.build())
    model = modelc.read(pack(tmp_path / "odd.gguf", tmp_path / "odd.modelc"))
    texts = [
        model.metadata["general.odd"],
        model.metadata["tokenizer.ggml.tokens"][0],
        model.metadata["tokenizer.chat_template"],
        *model.tensors,
    ]
    assert [text.encode("utf-8", "surrogateescape") for text in texts] == [odd] * 4


def test_smollm2_keeps_every_bit(smollm2_gguf: Path, tmp_path: Path) -> None:
    before, after = gguf.read(smollm2_gguf), modelc.read(pack(smollm2_gguf, tmp_path / "out.modelc"))
    assert after.metadata == before.metadata
    assert all(np.array_equal(plain_bytes(t), before.tensors[name].stored) for name, t in after.tensors.items())


HF = Path(__file__).parent / "data" / "hf"


@pytest.mark.parametrize("name", ["bert-tiny", "llama-tiny-gqa-untied"])
def test_a_folder_is_packed_with_its_names_and_metadata_unchanged(tmp_path: Path, name: str) -> None:
    before = open_model(HF / name)
    outputs = [pack(HF / name, tmp_path / f"{number}.modelc") for number in range(2)]
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
    after = modelc.read(outputs[0])
    assert (after.name, after.architecture, after.source_format) == (name, before.architecture, "safetensors")
    assert after.metadata == before.metadata
    assert after.metadata["config"] == json.loads((HF / name / "config.json").read_text())
    assert [(t.name, t.dtype, t.shape) for t in after.tensors.values()] == [
        (t.name, t.dtype, t.shape) for t in before.tensors.values()
    ]
    assert all(np.array_equal(plain_bytes(t), before.tensors[n].stored) for n, t in after.tensors.items())
    assert {t.layout for t in after.tensors.values() if len(t.shape) == 2} == {"lanes"}


@pytest.mark.parametrize("compress", [False, True])
def test_a_tensor_without_elements_survives_packing(tmp_path: Path, compress: bool) -> None:
    source = tmp_path / "small.safetensors"
    source.write_bytes(small_safetensors())
    output = pack(source, tmp_path / "out.modelc", compress=compress)
    modelc.verify(output)
    tensor = modelc.read(output).tensors["none"]
    assert (tensor.dtype.name, tensor.shape, tensor.layout, tensor.stored.nbytes) == ("i64", (0, 4), "plain", 0)


def test_a_chat_template_beside_the_weights_survives_packing(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(small_safetensors())
    (tmp_path / "chat_template.jinja").write_text("{{ messages }}")
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {"": 0, "\ud800": 1}}}))
    output = pack(tmp_path, tmp_path / "out.modelc")
    metadata = modelc.read(output).metadata
    assert metadata["chat_template"] == "{{ messages }}"
    assert metadata["tokenizer"] == {"model": {"vocab": {"": 0, "\ud800": 1}}}
    assert pack(output, tmp_path / "again.modelc").read_bytes() == output.read_bytes()


def test_the_source_is_not_replaced_by_its_packed_form(source: Path, tmp_path: Path) -> None:
    (tmp_path / "link.modelc").symlink_to(source)
    content = source.read_bytes()
    for output in (source, tmp_path / "link.modelc"):
        with pytest.raises(BadInputError, match="the output is the model itself"):
            pack(source, output)
    assert source.read_bytes() == content
