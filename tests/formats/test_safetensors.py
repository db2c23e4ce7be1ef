import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

from modelc.errors import BadFileError, NotFoundError, UnsupportedError
from modelc.formats import safetensors
from tests.formats.safetensors_builder import build, entry, small_safetensors, tensors, write_shards


def write(folder: Path, content: bytes, name: str = "tiny.safetensors") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_a_small_file_is_read_whole(tmp_path: Path) -> None:
    model = safetensors.read(write(tmp_path, small_safetensors()))
    assert (model.name, model.architecture, model.source_format) == ("tiny", "mlp", "safetensors")
    assert model.metadata == {"format": "pt", "author": "nobody"}
    assert [(t.name, t.dtype.name, t.shape, t.stored.tobytes()) for t in model.tensors.values()] == [
        ("flags", "bool", (3,), b"\1\0\1"),
        ("layer0.bias", "f16", (2,), b"\0\x3c\0\xc0"),
        ("layer0.weight", "f32", (2, 3), bytes(range(24))),
        ("none", "i64", (0, 4), b""),
    ]


def test_tensors_are_read_only_views_of_one_mapping(tmp_path: Path) -> None:
    model = safetensors.read(write(tmp_path, small_safetensors()))
    assert model.tensors["flags"].stored.ctypes.data - model.tensors["layer0.weight"].stored.ctypes.data == 24
    assert not any(t.stored.flags.writeable or t.stored.flags.owndata for t in model.tensors.values())


TYPES = {
    "F64": ("f64", 8),
    "F32": ("f32", 4),
    "F16": ("f16", 2),
    "BF16": ("bf16", 2),
    "F8_E4M3": ("f8_e4m3", 1),
    "F8_E5M2": ("f8_e5m2", 1),
    "I64": ("i64", 8),
    "I32": ("i32", 4),
    "I16": ("i16", 2),
    "I8": ("i8", 1),
    "U8": ("u8", 1),
    "BOOL": ("bool", 1),
}


@pytest.mark.parametrize("code", TYPES)
def test_every_element_type_is_read(tmp_path: Path, code: str) -> None:
    name, n_bytes = TYPES[code]
    tensor = safetensors.read(write(tmp_path, tensors(("x", code, (3,), bytes(range(3 * n_bytes)))))).tensors["x"]
    assert (tensor.dtype.name, tensor.stored.tobytes()) == (name, bytes(range(3 * n_bytes)))


def test_a_file_by_the_reference_writer_is_read_the_same(tmp_path: Path) -> None:
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    content = save({"w": weights, "s": np.array(7, np.int16), "e": np.zeros((0, 2), np.float16)}, {"made": "here"})
    model = safetensors.read(write(tmp_path, content))
    assert np.array_equal(model.tensors["w"].stored.view("<f4").reshape(2, 3), weights)
    assert (model.tensors["s"].shape, model.tensors["s"].stored.tobytes()) == ((), b"\7\0")
    assert model.tensors["e"].shape == (0, 2)
    assert model.metadata == {"made": "here"}


def test_a_file_without_tensors_is_read(tmp_path: Path) -> None:
    assert safetensors.read(write(tmp_path, build({}))).tensors == {}


def test_unknown_fields_of_an_entry_are_ignored(tmp_path: Path) -> None:
    content = build({"x": entry() | {"comment": "?"}}, bytes(4))
    assert safetensors.read(write(tmp_path, content)).tensors["x"].shape == (1,)


# ---- damaged and hostile files: what is wrong -> the message, and the file

HUGE = 1 << 63
HOSTILE: dict[str, tuple[str, bytes]] = {
    # the header as a whole
    "seven bytes": (
        "a header of wrong length: .*offset 0: got 7 bytes, expected a file of at least 10",
        b"\2\0\0\0\0\0\0",
    ),
    "header past the end": ("a header of wrong length: .*got 3 bytes, expected 2 to 2 bytes", b"\3" + bytes(7) + b"{}"),
    "header of 2^64-1 bytes": (f"a header of wrong length: .*got {(1 << 64) - 1} bytes", b"\xff" * 8 + b"{}"),
    "header of 2^63 bytes": (f"a header of wrong length: .*got {HUGE} bytes", HUGE.to_bytes(8, "little") + b"{}"),
    "header of no bytes": ("a header of wrong length: .*got 0 bytes", bytes(8) + b"{}"),
    "no JSON": ("the header is not JSON: .*offset 8: got JSONDecodeError", build(b"{no json}")),
    "no UTF-8": ("the header is not JSON: .*UnicodeDecodeError", build(b'{"\xff": 1}')),
    "list": ("the header is not an object: .*got list", build(b"[]")),
    "deep nesting": ("the header is not JSON: .*RecursionError", build(b'{"a":' + b"[" * 200_000)),
    "number without end": ("the header is not JSON: .*ValueError", build(b'{"a":' + b"9" * 5000 + b"}")),
    "name twice": (
        "a key appears twice in the header: .*got 'x'",
        build(b'{"x":' + json.dumps(entry()).encode() + b',"x":' + json.dumps(entry()).encode() + b"}", bytes(4)),
    ),
    "shape twice": (
        "a key appears twice in the header: .*got 'shape'",
        build(b'{"x":{"dtype":"F32","shape":[1],"shape":[2],"data_offsets":[0,4]}}', bytes(4)),
    ),
    # __metadata__
    "metadata that is a list": ("__metadata__ is wrong: .*got \\[\\]", build({"__metadata__": []})),
    "metadata with a number": ("__metadata__ is wrong: .*'a': 1", build({"__metadata__": {"a": 1}})),
    "metadata without a name": ("metadata is not JSON: .*the key ''", build({"__metadata__": {"": "x"}})),
    # entries
    "entry that is a number": ("an entry of the header is not an object: .*'x': got 3", build({"x": 3})),
    "no dtype": ("unknown element type: .*got None", build({"x": {"shape": [1], "data_offsets": [0, 4]}}, bytes(4))),
    "unknown dtype": ("unknown element type: .*got F33, expected F64, F32", build({"x": entry("F33")}, bytes(4))),
    "dtype that is a list": ("unknown element type: ", build({"x": entry() | {"dtype": ["F32"]}}, bytes(4))),
    "no shape": ("a wrong shape: .*got None", build({"x": {"dtype": "F32", "data_offsets": [0, 4]}}, bytes(4))),
    "negative dimension": (r"a wrong shape: .*got \[-1\]", build({"x": entry(shape=[-1])}, bytes(4))),
    "fractional dimension": (r"a wrong shape: .*got \[1\.0\]", build({"x": entry(shape=[1.0])}, bytes(4))),
    "dimension that is true": (r"a wrong shape: .*got \[True\]", build({"x": entry(shape=[True])}, bytes(4))),
    "dimension of 2^63": (f"a wrong shape: .*got .{HUGE}", build({"x": entry(shape=[HUGE])}, bytes(4))),
    "product of 2^64": (
        f"do not fit its shape: .*got 4, expected {1 << 66} bytes",
        build({"x": entry(shape=[1 << 32, 1 << 32])}, bytes(4)),
    ),
    "a dimension of zero, and bytes": (
        "do not fit its shape: .*got 4, expected 0 bytes",
        build({"x": entry(shape=[0, 1 << 62])}, bytes(4)),
    ),
    "bytes for another dtype": (
        "do not fit its shape: .*expected 8 bytes for F64",
        build({"x": entry("F64")}, bytes(4)),
    ),
    # offsets
    "one offset": (r"wrong data_offsets: .*got \[0\]", build({"x": entry() | {"data_offsets": [0]}}, bytes(4))),
    "offsets that descend": (r"wrong data_offsets: .*got \[4, 0\]", build({"x": entry(begin=4, end=0)}, bytes(4))),
    "negative offset": (r"wrong data_offsets: .*got \[-4, 0\]", build({"x": entry(begin=-4, end=0)}, bytes(4))),
    "offset beyond 2^63": (
        f"wrong data_offsets: .*got .{HUGE}",
        build({"x": entry(begin=HUGE, end=HUGE + 4)}, bytes(4)),
    ),
    "offset near 2^63": (
        "runs past the end of the file: .*'x'",
        build({"x": entry(begin=HUGE - 5, end=HUGE - 1)}, bytes(4)),
    ),
    "data a byte short": (
        "runs past the end of the file: .*tensor 'x': got 7[0-9] bytes",
        build({"x": entry()}, bytes(3)),
    ),
    "overlap": (
        "tensors overlap: .*'y': got offset 2, expected offset 4",
        build({"x": entry(), "y": entry(begin=2, end=6)}, bytes(6)),
    ),
    "same place": ("tensors overlap: .*'y'", build({"x": entry(), "y": entry()}, bytes(4))),
    "gap before the first": ("a gap before a tensor: .*'x'", build({"x": entry(begin=4, end=8)}, bytes(8))),
    "gap": ("a gap before a tensor: .*'y'", build({"x": entry(), "y": entry(begin=8, end=12)}, bytes(12))),
    "bytes after the last": ("bytes after the last tensor: .*offset 7", build({"x": entry()}, bytes(5))),
    "no elements in a gap": (
        "a gap before a tensor: .*'e': got offset 8",
        build({"x": entry(), "e": entry(shape=[0], begin=8, end=8)}, bytes(8)),
    ),
    "nameless tensor": ("a tensor has no proper name", build({"": entry()}, bytes(4))),
    # something else under the name
    "web page": ("not a Safetensors file: .*got an HTML page", b"<!DOCTYPE html><html>" + bytes(100)),
    "pointer": ("not a Safetensors file: .*got a Git LFS pointer", b"version https://git-lfs.github.com/spec/v1\n"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_one_clear_error(tmp_path: Path, case: str) -> None:
    message, content = HOSTILE[case]
    path = write(tmp_path, content)
    with pytest.raises(BadFileError, match=message) as caught:
        safetensors.read(path)
    assert caught.value.path == str(path)
    assert str(caught.value).isprintable()


def test_every_truncation_is_an_error(tmp_path: Path) -> None:
    whole = small_safetensors()
    for length in range(1, len(whole)):
        with pytest.raises(BadFileError):
            safetensors.read(write(tmp_path, whole[:length]))


def test_a_header_with_too_many_values_is_refused_before_it_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("modelc.formats.json_text.MAX_VALUES", 10)
    with pytest.raises(BadFileError, match=r"the header is too long: .*expected at most 10 values"):
        safetensors.read(write(tmp_path, small_safetensors()))


@pytest.mark.parametrize("code", ["U16", "F4", "C64"])
def test_a_type_that_modelc_lacks_is_named(tmp_path: Path, code: str) -> None:
    with pytest.raises(UnsupportedError, match=f"element type {code} is not supported: .*tensor 'x'"):
        safetensors.read(write(tmp_path, build({"x": entry(code)}, bytes(4))))


def test_more_dimensions_than_a_packed_file_may_have_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"too many dimensions: .*got 9, expected at most 8"):
        safetensors.read(write(tmp_path, build({"x": entry(shape=[1] * 9)}, bytes(4))))


# ---- shards


@pytest.mark.parametrize("named", ["model.safetensors.index.json", "model-00002-of-00002.safetensors"])
def test_a_sharded_model_is_read_whole_from_its_index_or_any_shard(tmp_path: Path, named: str) -> None:
    write_shards(tmp_path)
    model = safetensors.read(tmp_path / named)
    assert model.name == "model"
    assert {name: t.stored.tobytes() for name, t in model.tensors.items()} == {"a": b"\2\0", "b": b"\1\0"}
    assert list(model.tensors) == ["a", "b"]
    assert model.metadata == {"part": "1"}


def test_a_shard_without_an_index_is_a_file_of_its_own(tmp_path: Path) -> None:
    write_shards(tmp_path).unlink()
    assert list(safetensors.read(tmp_path / "model-00002-of-00002.safetensors").tensors) == ["a"]


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    index = write_shards(tmp_path)
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(NotFoundError, match=r"no such file: .*model-00002-of-00002\.safetensors"):
        safetensors.read(index)


def test_a_tensor_that_is_not_in_its_shard_is_named(tmp_path: Path) -> None:
    index = write_shards(tmp_path)
    changed = json.loads(index.read_text())
    changed["weight_map"]["c"] = changed["weight_map"]["a"]
    index.write_text(json.dumps(changed))
    with pytest.raises(BadFileError, match=r"names another shard: .*'c': got no shard, expected in model-00002"):
        safetensors.read(index)


def test_a_tensor_in_two_shards_is_refused(tmp_path: Path) -> None:
    index = write_shards(tmp_path)
    second = tmp_path / "model-00002-of-00002.safetensors"
    second.write_bytes(second.read_bytes().replace(b'"a"', b'"b"'))
    with pytest.raises(BadFileError, match=r"in two shards: .*tensor 'b': got model-00001.* and model-00002"):
        safetensors.read(index)


@pytest.mark.parametrize(
    "shard",
    ["../outside.safetensors", "/etc/passwd", "a/../../outside.safetensors", "..\\x", "c:x", "", ".", "..", "x\0"],
)
def test_a_shard_outside_the_folder_is_refused(tmp_path: Path, shard: str) -> None:
    write(tmp_path, tensors(("a", "U8", (1,), b"x")), "outside.safetensors")
    (tmp_path / "model").mkdir()
    index = tmp_path / "model" / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": shard}}))
    with pytest.raises(BadFileError, match=r"a file outside the model's folder is named: .*expected a file in"):
        safetensors.read(index)


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    outside = write(tmp_path, tensors(("a", "U8", (1,), b"x")), "outside.safetensors")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "x.safetensors").symlink_to(outside)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "x.safetensors"}}))
    with pytest.raises(BadFileError, match=r"a file outside the model's folder is named: .*got x.safetensors"):
        safetensors.read(index)


def test_a_download_cache_that_links_every_file_to_one_folder_is_read(tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "main"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    write_shards(blobs)
    for blob in blobs.iterdir():
        (snapshot / blob.name).symlink_to(blob)
    assert list(safetensors.read(snapshot / "model.safetensors.index.json").tensors) == ["a", "b"]


@pytest.mark.parametrize("content", [{}, {"weight_map": {}}, {"weight_map": []}, {"weight_map": {"a": 1}}])
def test_an_index_without_a_weight_map_is_refused(tmp_path: Path, content: Any) -> None:
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps(content))
    with pytest.raises(BadFileError, match="the index has no proper weight_map: "):
        safetensors.read(index)


# ---- what stands beside


def test_configuration_and_tokenizer_beside_the_file_become_metadata(tmp_path: Path) -> None:
    beside = {
        "config.json": {"model_type": "gpt2", "n_layer": 2},
        "generation_config.json": {"eos_token_id": [1, 2]},
        "tokenizer.json": {"model": {"type": "BPE", "vocab": {"": 0, "a": 1}, "merges": []}},
        "tokenizer_config.json": {"bos_token": {"content": "<s>"}},
        "special_tokens_map.json": {"eos_token": "</s>"},
        "modules.json": [{"idx": 0}],
    }
    for name, content in beside.items():
        (tmp_path / name).write_text(json.dumps(content))
    (tmp_path / "chat_template.jinja").write_text("{{ 'é' }}\n", encoding="utf-8")
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    model = safetensors.read(write(tmp_path, small_safetensors()))
    assert model.architecture == "gpt2"
    assert model.metadata == {
        "format": "pt",
        "author": "nobody",
        "config": beside["config.json"],
        "generation_config": beside["generation_config.json"],
        "tokenizer": beside["tokenizer.json"],
        "tokenizer_config": beside["tokenizer_config.json"],
        "special_tokens_map": beside["special_tokens_map.json"],
        "chat_template": "{{ 'é' }}\n",
        "modules": [{"idx": 0}],
        "pooling": {"pooling_mode_mean_tokens": True},
    }


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", "{", "the file is not JSON: .*config.json"),
        ("config.json", "[]", "the file has another form: .*config.json: got list, expected an object"),
        ("config.json", '{"a": 1, "a": 2}', "a key appears twice in the file: .*got 'a'"),
        ("config.json", '{"model_type": 3}', "model_type in config.json is wrong: .*got 3"),
        ("config.json", '{"architectures": [3]}', "architectures in config.json is wrong: "),
        ("config.json", '{"architectures": "BertModel"}', "architectures in config.json is wrong: "),
        ("tokenizer.json", "", "the file is empty: .*tokenizer.json"),
        ("modules.json", "{}", "the file has another form: .*modules.json: got dict, expected a list"),
    ],
)
def test_a_damaged_file_beside_is_named(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(BadFileError, match=message):
        safetensors.read(write(tmp_path, small_safetensors()))


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        ("[", "json_keys is not JSON"),
        ('["absent"]', "list of keys"),
        ('"a"', "list of keys"),
        ('["a"]', "key a is not JSON"),
    ],
)
def test_damaged_json_in_the_metadata_is_refused(tmp_path: Path, listed: str, message: str) -> None:
    header = json.dumps({"__metadata__": {"a": "{", "modelc.json_keys": listed}}).encode()
    path = tmp_path / "m.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(BadFileError, match=message):
        safetensors.read(path)
