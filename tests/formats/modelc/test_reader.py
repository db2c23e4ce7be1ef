import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from modelc.errors import BadFileError, NotFoundError, UnsupportedError
from modelc.formats import modelc
from modelc.packing import pack
from tests.formats.modelc.artifacts import METADATA, forge, tiny_model


@pytest.fixture(params=[False, True], ids=["plain", "zstd"])
def artifact(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "tiny.modelc"
    modelc.write(tiny_model(), path, compress=request.param)
    return path


def test_what_was_written_is_read_exactly(artifact: Path) -> None:
    before, after = tiny_model(), modelc.read(artifact)
    assert (after.name, after.architecture, after.source_format) == ("tiny", "llama", "gguf")
    assert after.metadata == METADATA
    assert list(after.tensors) == ["a.weight", "b", "c", "ä\n"]
    for name, tensor in after.tensors.items():
        same = before.tensors[name]
        assert (tensor.dtype, tensor.shape, tensor.layout) == (same.dtype, same.shape, "plain")
        assert np.array_equal(tensor.stored, same.stored)


def test_tensors_are_aligned_and_read_only(artifact: Path) -> None:
    for tensor in modelc.read(artifact).tensors.values():
        assert tensor.stored.ctypes.data % 64 == 0
        assert not tensor.stored.flags.writeable


def test_a_plain_file_is_used_in_place(tmp_path: Path) -> None:
    path = tmp_path / "tiny.modelc"
    modelc.write(tiny_model(), path)
    stored = [tensor.stored for tensor in modelc.read(path).tensors.values()]
    start = int.from_bytes(path.read_bytes()[16:24], "little") + 64
    start += -start % 4096
    assert path.read_bytes()[start : start + 20] == stored[0].tobytes()
    assert stored[1].ctypes.data - stored[0].ctypes.data == 64
    assert not any(view.flags.owndata for view in stored)


def test_numbers_that_json_lacks_survive(tmp_path: Path) -> None:
    modelc.write(tiny_model(x=[float("inf"), float("-inf"), float("nan"), -0.0, (1 << 64) - 1]), tmp_path / "x.modelc")
    values = modelc.read(tmp_path / "x.modelc").metadata["x"]
    assert [repr(value) for value in values] == ["inf", "-inf", "nan", "-0.0", "18446744073709551615"]


def test_a_template_that_is_no_text_stays_with_the_tokenizer(tmp_path: Path) -> None:
    template = {"tokenizer.chat_template": ["x"]}
    modelc.write(tiny_model(**template), tmp_path / "x.modelc")
    assert modelc.read(tmp_path / "x.modelc").metadata["tokenizer.chat_template"] == ["x"]


def test_an_empty_template_is_not_lost(tmp_path: Path) -> None:
    modelc.write(tiny_model(**{"tokenizer.chat_template": ""}), tmp_path / "x.modelc")
    assert modelc.read(tmp_path / "x.modelc").metadata["tokenizer.chat_template"] == ""


def test_the_header_is_read_without_the_tensors(artifact: Path) -> None:
    header = modelc.read_header(artifact)
    model = modelc.read(artifact)
    assert (header.name, header.metadata) == ("tiny", METADATA)
    assert header.compression == ("zstd" if header.format_version == 2 else "none")
    assert (header.total_params, header.total_bytes) == (model.total_params, model.total_bytes) == (140, 134)


def test_the_header_is_json_that_any_tool_reads(artifact: Path) -> None:
    content = artifact.read_bytes()
    fields = json.loads(content[64 : 64 + int.from_bytes(content[16:24], "little")].decode("utf-8"))
    assert fields["hyperparameters"]["llama.block_count"] == 2
    assert fields["tokenizer"]["tokenizer.ggml.tokens"][:2] == ["a", "Ġb"]
    assert fields["chat_template"] == "{{ messages }}"
    assert (fields["layout_version"], fields["source_format"]) == (1, "gguf")
    assert [row["name"] for row in fields["tensors"]] == ["a.weight", "b", "c", "ä\n"]
    assert fields["tensors"][0]["shape"] == [5]


def test_a_model_without_tensors_is_a_file_too(tmp_path: Path) -> None:
    model = tiny_model()
    model.tensors.clear()
    for compress in (False, True):
        modelc.write(model, tmp_path / "x.modelc", compress)
        assert modelc.read(tmp_path / "x.modelc").tensors == {}
        assert modelc.verify(tmp_path / "x.modelc").entries == ()


def row(number: int, **fields: Any) -> Callable[[Any], None]:
    return lambda header: header["tensors"][number].update(fields)


def drop(key: str) -> Callable[[Any], None]:
    return lambda header: header.__delitem__(key)


FORGED: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "no JSON": ("the header is not JSON: .*JSONDecodeError", lambda header: b"{"),
    "no text": ("the header is not JSON: .*UnicodeDecodeError", lambda header: b'"\xff"'),
    "endless nesting": ("the header is not JSON: .*RecursionError", lambda header: b"[" * 100_000),
    "endless number": ("the header is not JSON: .*ValueError", lambda header: b"1" * 10_000),
    "list": ("the header is not a JSON object: .*got list", lambda header: []),
    "too many values": ("the header has too many values", lambda header: b"[" + b"0," * (1 << 23) + b"0]"),
    "no name": ("header field name is missing or wrong: .*got None", drop("name")),
    "empty name": ("header field name is missing or wrong: .*got ''", lambda header: header.update(name="")),
    "no tensors": ("header field tensors is missing", drop("tensors")),
    "no metadata": ("header field hyperparameters is missing", drop("hyperparameters")),
    "other version": ("format_version is wrong: .*got 9", lambda header: header.update(format_version=9)),
    "other compression": ("compression is wrong: .*got 'lz4'", lambda header: header.update(compression="lz4")),
    "number as template": ("header field chat_template is", lambda header: header.update(chat_template=3)),
    "deep metadata": (
        "metadata is not JSON",
        lambda header: header["tokenizer"].update(x=json.loads("[" * 40 + "]" * 40)),
    ),
    "row that is no object": (
        "a row of the tensor table is not an object: .*3 in row 0",
        lambda header: header["tensors"].insert(0, 3),
    ),
    "tensor twice": (
        "not sorted by name: .*'a.weight'",
        lambda header: header["tensors"].insert(0, header["tensors"][0]),
    ),
    "reversed": ("not sorted by name|at a wrong offset", lambda header: header["tensors"].reverse()),
    "last one missing": ("table does not fit the file", lambda header: header["tensors"].__delitem__(-1)),
    "unknown type": ("unknown tensor type: .*'b'.*got q9", row(1, dtype="q9")),
    "no type": ("header field dtype is missing or wrong: .*tensor 'b'", row(1, dtype=None)),
    "negative dimension": (r"a wrong shape: .*'b'.*\(-1,\)", row(1, shape=[-1])),
    "no elements, and bytes": ("a wrong length.*'b'.*expected 0", row(1, shape=[0])),
    "dimension of 2^70": ("a wrong shape: .*'b'", row(1, shape=[1 << 70])),
    "truth value as dimension": ("a wrong shape", row(1, shape=[True])),
    "list as dimension": ("a wrong shape", row(1, shape=[[64]])),
    "nine dimensions": ("a wrong shape", row(1, shape=[64, 1, 1, 1, 1, 1, 1, 1, 1])),
    "part of a block": ("a wrong shape: .*multiple of 32 for q4_0", row(1, shape=[63])),
    "lanes of a vector": ("a wrong layout: .*got lanes, expected plain", row(1, layout="lanes")),
    "plain matrix": ("a wrong layout: .*got plain, expected lanes", row(0, shape=[1, 5])),
    "overlap": ("at a wrong offset: .*'b': got 0, expected 64", row(1, offset=0)),
    "unaligned": ("at a wrong offset: .*'b': got 65, expected 64", row(1, offset=65)),
    "negative offset": ("header field offset is missing or wrong: .*got -64", row(1, offset=-64)),
    "offset near 2^64": ("header field offset is", row(1, offset=(1 << 64) - 64)),
    "length of zero": ("a wrong length: .*'b'", row(1, length=0)),
    "length of 2^62": ("a wrong length|does not fit the file|a wrong offset", row(1, length=1 << 62)),
    "fractional length": ("header field length is", row(1, length=36.0)),
    "short checksum": ("checksum is wrong: .*64 hexadecimal digits", row(1, checksum="00")),
    "checksum of other letters": ("checksum is wrong", row(1, checksum="Z" * 64)),
}


@pytest.mark.parametrize("case", FORGED)
def test_a_header_that_contradicts_itself_is_one_clear_error(case: str, artifact: Path) -> None:
    message, change = FORGED[case]
    forge(artifact, change)
    with pytest.raises(BadFileError, match=message) as caught:
        modelc.read(artifact)
    assert caught.value.path == str(artifact)
    assert caught.value.got is not None
    assert caught.value.expected is not None


def test_another_layout_version_is_refused(artifact: Path) -> None:
    forge(artifact, lambda header: header.update(layout_version=2))
    with pytest.raises(UnsupportedError, match=r"layout version not supported: .*got 2, expected 1; look for a newer"):
        modelc.read(artifact)


def test_a_field_that_this_version_does_not_know_is_ignored(artifact: Path) -> None:
    forge(artifact, lambda header: header.update(comment="from the future"))
    assert modelc.read(artifact).name == "tiny"


def edited(path: Path, offset: int, content: bytes) -> Path:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(content)
    return path


def test_another_format_version_is_refused(artifact: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"\.modelc version not supported: .*offset 8: got 3, expected 1 or 2"):
        modelc.read(edited(artifact, 8, b"\x03"))


@pytest.mark.parametrize("length", [(1 << 64) - 1, 1 << 40])
def test_a_header_length_beyond_the_file_is_refused(artifact: Path, length: int) -> None:
    with pytest.raises(BadFileError, match=f"header is too long: .*offset 16: got {length} bytes"):
        modelc.read(edited(artifact, 16, length.to_bytes(8, "little")))


@pytest.mark.parametrize("offset", [12, 16, 24, 40, 70, 300])
def test_a_changed_byte_before_the_tensors_is_found_when_reading(artifact: Path, offset: int) -> None:
    with pytest.raises(BadFileError, match="the header's checksum is wrong"):
        modelc.read(edited(artifact, offset, bytes([artifact.read_bytes()[offset] ^ 1])))


def test_every_truncation_is_an_error(artifact: Path) -> None:
    whole = artifact.read_bytes()
    for length in (*range(1, 100), *range(100, len(whole), 61), len(whole) - 1):
        artifact.write_bytes(whole[:length])
        with pytest.raises(BadFileError):
            modelc.read(artifact)


def test_bytes_after_the_end_are_an_error(artifact: Path) -> None:
    artifact.write_bytes(artifact.read_bytes() + b"\0")
    with pytest.raises(BadFileError, match="another length than it was written with"):
        modelc.read(artifact)


def test_another_file_under_the_name_is_called_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "x.modelc").write_bytes(b"GGUF" + bytes(100))
    with pytest.raises(BadFileError, match=r"not a \.modelc file: .*got a GGUF file"):
        modelc.read(tmp_path / "x.modelc")


def test_a_missing_file_is_answered_with_a_near_name(artifact: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no such file: .*tinny.modelc; did you mean 'tiny.modelc'\?"):
        modelc.read(artifact.with_name("tinny.modelc"))


# ---- compressed tensors


def test_a_frame_of_another_size_is_refused_before_memory_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "x.modelc"
    modelc.write(tiny_model(), path, compress=True)
    forge(path, row(3, shape=[1 << 33]))
    with pytest.raises(BadFileError, match=r"wrong length after decompression: .*got 70, expected 8589934592"):
        modelc.read(path)


def test_a_model_larger_than_the_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.modelc"
    modelc.write(tiny_model(), path, compress=True)
    forge(path, row(3, shape=[1 << 62]))
    with pytest.raises(UnsupportedError, match=r"larger than the memory: .*pack it without compression"):
        modelc.read(path)


def test_a_damaged_frame_is_an_error_and_never_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "x.modelc"
    modelc.write(tiny_model(), path, compress=True)
    entry = modelc.read_header(path).entries[3]
    offset = path.stat().st_size - entry.length
    edited(path, offset, b"\0" * entry.length)
    with pytest.raises(BadFileError, match=r"cannot be decompressed: .*tensor 'ä\\n'"):
        modelc.read(path)


def test_smollm2_opens_in_50_milliseconds(smollm2_gguf: Path, tmp_path: Path) -> None:
    path = pack(smollm2_gguf, tmp_path / "smol.modelc")
    times_s = []
    for _ in range(5):
        start_s = time.process_time()  # other processes may hold the CPU for longer than this takes
        model = modelc.read(path)
        times_s.append(time.process_time() - start_s)
    assert min(times_s) < 0.050
    assert len(model.metadata["tokenizer.ggml.tokens"]) == 49_152
