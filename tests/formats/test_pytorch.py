"""The files in `tests/data/pytorch` were written by `torch.save` of torch 2.13."""

import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from modelc.errors import BadFileError, NotFoundError, UnsupportedError
from modelc.formats import detect, open_model, pytorch
from tests.formats.pytorch_builder import archive, name, state_dict, storage, tensor, value, zip_of
from tests.formats.safetensors_builder import small_safetensors, tensors

DATA = Path(__file__).parents[1] / "data" / "pytorch"


def write(folder: Path, content: bytes, file: str = "tiny.pt") -> Path:
    path = folder / file
    path.write_bytes(content)
    return path


def test_a_state_dictionary_of_torch_is_read_exactly() -> None:
    model = pytorch.read(DATA / "state_dict.pt")
    assert (model.name, model.architecture, model.source_format) == ("state_dict", "mlp", "pytorch")
    base = np.arange(12, dtype="<f4").reshape(3, 4)
    expected = {
        "layer0.weight": ("f32", base.T),  # a transposed view
        "layer0.bias": ("f32", np.array([1, 2, 3, 4], "<f4")),
        "shared.a": ("f32", base),
        "shared.row": ("f32", base[1]),
        "expanded": ("f32", np.array([[7, 7, 7], [8, 8, 8]], "<f4")),
        "bf16": ("bf16", np.array([0x3FC0, 0xC000, 0x4050], "<u2")),
        "half": ("f16", np.array([[0.5, 1], [2, -4]], "<f2")),
        "f64": ("f64", np.array([0.1], "<f8")),
        "i64": ("i64", np.array([-(1 << 40), 5], "<i8")),
        "i32": ("i32", np.array([-7, 8], "<i4")),
        "i16": ("i16", np.array([-300], "<i2")),
        "i8": ("i8", np.array([-1, 2], "i1")),
        "u8": ("u8", np.array([255, 2], "u1")),
        "bool": ("bool", np.array([1, 0, 1], "u1")),
        "scalar": ("f32", np.array(2.5, "<f4")),
        "empty": ("f32", np.zeros((0, 3), "<f4")),
        "parameter": ("f32", np.array([1, -1], "<f4")),
        "f8": ("f8_e4m3", np.array([0x38, 0xC0], "u1")),
        "f8_e5m2": ("f8_e5m2", np.array([0x3C, 0xC0], "u1")),
    }
    assert list(model.tensors) == sorted(expected)
    for key, (dtype, array) in expected.items():
        found = model.tensors[key]
        assert (found.dtype.name, found.shape, found.stored.tobytes()) == (dtype, array.shape, array.tobytes()), key


def test_tensors_whose_elements_follow_each_other_are_views_of_one_mapping() -> None:
    found = pytorch.read(DATA / "state_dict.pt").tensors
    assert found["shared.row"].stored.ctypes.data - found["shared.a"].stored.ctypes.data == 16
    assert not any(t.stored.flags.writeable for t in found.values())


def test_of_a_training_run_the_weights_and_plain_values_are_taken() -> None:
    model = pytorch.read(DATA / "training.pt")
    assert {key: t.stored.view("<f4").tolist() for key, t in model.tensors.items()} == {
        "bias": [0, 0],
        "weight": [0, 1, 2, 3, 4, 5],
    }
    assert model.metadata == {"epoch": 3, "args": {"dim": 3, "names": ["a"]}}


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (
            "module.pt",
            r"made of more than tensors: .*got torch\.nn\.modules\.linear\.Linear.*; save only its state_dict",
        ),
        ("script.pt", r"made of more than tensors: .*got __torch__\.torch\.nn\.modules\.linear\.Linear"),
        ("sparse.pt", r"made of more than tensors: .*got torch\._utils\._rebuild_sparse_tensor"),
        ("legacy.pt", r"a pickle, as torch wrote it before version 1\.6: .*; load it with torch and save it again"),
    ],
)
def test_what_is_not_a_checkpoint_of_tensors_is_named(file: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        pytorch.read(DATA / file)


def test_the_archive_of_these_tests_is_read_like_that_of_torch(tmp_path: Path) -> None:
    found = pytorch.read(write(tmp_path, archive(state_dict(a=tensor(), b=tensor((2, 2), (1, 2))))))
    assert found.tensors["a"].stored.tobytes() == bytes(range(16))
    assert found.tensors["b"].stored.view("<u4").tolist() == [0x03020100, 0x0B0A0908, 0x07060504, 0x0F0E0D0C]


def test_containers_are_flattened(tmp_path: Path) -> None:
    content = b"\x80\x02}(" + value("x") + b"](" + tensor() + b"}" + value("y") + tensor() + b"s" + value(5) + b"eu."
    assert list(pytorch.read(write(tmp_path, archive(content))).tensors) == ["x.0", "x.1.y"]


def test_a_tensor_alone_has_a_name(tmp_path: Path) -> None:
    assert list(pytorch.read(write(tmp_path, archive(b"\x80\x02" + tensor() + b"."))).tensors) == ["tensor"]


@pytest.mark.parametrize("key", ["state_dict", "model_state_dict", "model", "module"])
def test_the_state_dictionary_is_found_beside_the_state_of_the_optimizer(tmp_path: Path, key: str) -> None:
    inner = state_dict(w=tensor())[2:-1]
    content = b"\x80\x02}(" + value("optimizer") + state_dict(exp_avg=tensor())[2:-1] + value(key) + inner + b"u."
    assert list(pytorch.read(write(tmp_path, archive(content))).tensors) == ["w"]


def test_a_module_called_model_is_no_container_beside_other_tensors(tmp_path: Path) -> None:
    content = b"\x80\x02}(" + value("head") + tensor() + value("model") + state_dict(w=tensor())[2:-1] + b"u."
    assert list(pytorch.read(write(tmp_path, archive(content))).tensors) == ["head", "model.w"]


def test_a_sharded_checkpoint_is_read_whole(tmp_path: Path) -> None:
    weight_map = {}
    for number, key in enumerate("ab", 1):
        weight_map[key] = f"pytorch_model-0000{number}-of-00002.bin"
        write(tmp_path, archive(state_dict(**{key: tensor()})), weight_map[key])
    write(tmp_path, json.dumps({"weight_map": weight_map}).encode(), "pytorch_model.bin.index.json")
    write(tmp_path, b'{"model_type": "llama"}', "config.json")
    for path in (tmp_path, tmp_path / "pytorch_model.bin.index.json", tmp_path / weight_map["b"]):
        model = open_model(path)
        assert (model.architecture, model.source_format, list(model.tensors)) == ("llama", "pytorch", ["a", "b"])
    (tmp_path / weight_map["a"]).unlink()
    with pytest.raises(NotFoundError, match=r"pytorch_model-00001-of-00002\.bin"):
        open_model(tmp_path)


# ---- Safetensors in other clothes


def test_misnamed_safetensors_are_read(tmp_path: Path) -> None:
    model = open_model(write(tmp_path, small_safetensors()))
    assert (model.source_format, len(model.tensors)) == ("safetensors", 4)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_safetensors_in_a_zip_are_read(tmp_path: Path, method: int) -> None:
    other = tensors(("more", "U8", (1,), b"x"))
    path = write(
        tmp_path, zip_of({"m/a.safetensors": small_safetensors(), "m/b.safetensors": other}, method), "tiny.zip"
    )
    assert detect(path) == "pytorch"
    model = open_model(path)
    assert (model.source_format, model.metadata) == ("safetensors", {"format": "pt", "author": "nobody"})
    assert model.tensors["layer0.weight"].stored.tobytes() == bytes(range(24))
    assert len(model.tensors) == 5


def test_a_tensor_in_two_files_of_an_archive_is_refused(tmp_path: Path) -> None:
    content = zip_of({"a.safetensors": small_safetensors(), "b.safetensors": small_safetensors()})
    with pytest.raises(BadFileError, match="a tensor is in two files of the archive"):
        pytorch.read(write(tmp_path, content))


def test_compressed_storages_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, archive(state_dict(a=tensor()), method=zipfile.ZIP_DEFLATED))
    assert pytorch.read(path).tensors["a"].stored.tobytes() == bytes(range(16))


# ---- hostile checkpoints: what is wrong -> the message, and the file

HUGE = 1 << 62
HOSTILE: dict[str, tuple[str, bytes]] = {
    "no weights": (r"no weights in this zip archive: .*got \['x'\]", zip_of({"x": b"y"})),
    "two checkpoints": ("several checkpoints in one archive", zip_of({"a/data.pkl": b".", "b/data.pkl": b"."})),
    "missing storage": ("storage is missing: .*'a'.*data/9", archive(state_dict(a=tensor(store=storage("9"))))),
    "storage by a path": ("storage is missing: .*passwd", archive(state_dict(a=tensor(store=storage("../../passwd"))))),
    "past the storage": ("past the end of its storage: .*'a': got 20 bytes", archive(state_dict(a=tensor((5,))))),
    "offset past it": ("past the end of its storage: .*got 32 bytes", archive(state_dict(a=tensor(offset=4)))),
    "stride past it": ("past the end of its storage", archive(state_dict(a=tensor((2, 2), (HUGE, 1))))),
    "negative stride": ("not one of a checkpoint: .*a wrong shape", archive(state_dict(a=tensor((2,), (-1,), 3)))),
    "negative offset": ("not one of a checkpoint: .*a wrong shape", archive(state_dict(a=tensor(offset=-1)))),
    "product of 2^64": ("a wrong shape", archive(state_dict(a=tensor((1 << 32, 1 << 32), (0, 0))))),
    "an exabyte of one element": (
        f"repeat their bytes too often: .*got {HUGE * 4}",
        archive(state_dict(a=tensor((HUGE,), (0,)))),
    ),
    "shape that is a list": ("a wrong shape", archive(state_dict(a=tensor([4])))),
    "shape of truth": ("a wrong shape", archive(state_dict(a=tensor((True,))))),
    "strides missing": ("a wrong shape", archive(state_dict(a=tensor((2, 2))))),
    "nine dimensions": ("a wrong shape", archive(state_dict(a=tensor((1,) * 9, (1,) * 9)))),
    "number for a storage": ("a tensor of another form", archive(state_dict(a=tensor(store=value(3))))),
    "no element type": (
        "a tensor of another form",
        archive(state_dict(a=tensor(store=storage(kind=name("torch.storage", "UntypedStorage"))))),
    ),
    "two of one name": (
        "two tensors have the same name: .*'a.b'",
        archive(b"\x80\x02}(" + value("a.b") + tensor() + value("a") + state_dict(b=tensor())[2:-1] + b"u."),
    ),
    "nameless tensor": (
        "a tensor has no proper name",
        archive(b"\x80\x02}" + value("") + tensor() + b"s."),
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_checkpoint_is_one_clear_error(tmp_path: Path, case: str) -> None:
    message, content = HOSTILE[case]
    with pytest.raises(BadFileError, match=message) as caught:
        pytorch.read(write(tmp_path, content))
    assert str(caught.value).isprintable()
    assert caught.value.path == str(tmp_path / "tiny.pt")


def test_a_big_endian_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="a big-endian checkpoint"):
        pytorch.read(write(tmp_path, archive(state_dict(a=tensor()), byteorder=b"big")))


def test_containers_without_end_are_refused(tmp_path: Path) -> None:
    doubled = b"]" + b"".join(b"q" + bytes([i]) + b"]h" + bytes([i]) + b"ah" + bytes([i]) + b"a" for i in range(60))
    knot = b"\x80\x02]q\x00h\x00a."
    for content in (b"\x80\x02" + doubled + b".", knot, b"\x80\x02}" + value("model") + knot[2:-1] + b"s."):
        with pytest.raises(BadFileError, match="the checkpoint is nested too deeply"):
            pytorch.read(write(tmp_path, archive(content)))


@pytest.mark.parametrize(
    "content", [pickle.dumps({"a": 1}), b"<!doctype html>", b"GGUF\3\0\0\0", b"\x1f\x8b\x08", b"hello, world, hello"]
)
def test_something_else_under_the_name_is_called_what_it_is(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(
        (BadFileError, UnsupportedError), match=r"not a PyTorch file: .*got .*|a pickle, as torch wrote"
    ):
        pytorch.read(write(tmp_path, content))
