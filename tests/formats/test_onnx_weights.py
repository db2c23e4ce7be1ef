import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from modelc.errors import BadFileError, NotFoundError, UnsupportedError
from modelc.formats import onnx_weights, open_model

WEIGHTS = np.arange(6, dtype=np.float32).reshape(2, 3)


def model_of(*initializers: TensorProto, **properties: str) -> onnx.ModelProto:
    graph = helper.make_graph([], "g", [], [], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    helper.set_model_props(model, properties)
    return model


def write(folder: Path, *initializers: TensorProto, **properties: str) -> Path:
    path = folder / "tiny.onnx"
    path.write_bytes(model_of(*initializers, **properties).SerializeToString())
    return path


def external(folder: Path, name: str = "w", **fields: str) -> TensorProto:
    """A tensor of six floats in `data.bin`, at byte 8 unless `fields` say otherwise."""
    (folder / "data.bin").write_bytes(bytes(8) + WEIGHTS.tobytes() + bytes(4))
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    for key, value in ({"location": "data.bin", "offset": "8", "length": "24"} | fields).items():
        if value:
            tensor.external_data.add(key=key, value=value)
    return tensor


def test_inline_initializers_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, numpy_helper.from_array(WEIGHTS, "layer0.weight"), author="nobody")
    model = open_model(path)
    assert (model.name, model.architecture, model.source_format) == ("tiny", "mlp", "onnx")
    plan = model.metadata.pop("onnx.execution_plan")
    assert plan["graphs"][0]["initializers"] == {name: {"tensor": name} for name in model.tensors}
    assert model.metadata == {"author": "nobody", "onnx.ir_version": 9, "onnx.opset": {"": 17}}
    tensor = model.tensors["layer0.weight"]
    assert (tensor.dtype.name, tensor.shape, tensor.stored.tobytes()) == ("f32", (2, 3), WEIGHTS.tobytes())


TYPED: dict[str, tuple[int, Any]] = {
    "f32": (TensorProto.FLOAT, np.array([1.5, -2, 0], "<f4")),
    "f64": (TensorProto.DOUBLE, np.array([0.1, -2, 0], "<f8")),
    "f16": (TensorProto.FLOAT16, np.array([1.5, -2, 0], "<f2")),
    "bf16": (TensorProto.BFLOAT16, np.array([1.5, -2, 0], ml_dtypes.bfloat16)),
    "f8_e4m3": (TensorProto.FLOAT8E4M3FN, np.array([1.5, -2, 0], ml_dtypes.float8_e4m3fn)),
    "f8_e5m2": (TensorProto.FLOAT8E5M2, np.array([1.5, -2, 0], ml_dtypes.float8_e5m2)),
    "i64": (TensorProto.INT64, np.array([1 << 40, -2, 0], "<i8")),
    "i32": (TensorProto.INT32, np.array([1 << 30, -2, 0], "<i4")),
    "i16": (TensorProto.INT16, np.array([300, -2, 0], "<i2")),
    "i8": (TensorProto.INT8, np.array([127, -2, 0], "i1")),
    "u8": (TensorProto.UINT8, np.array([255, 2, 0], "u1")),
    "bool": (TensorProto.BOOL, np.array([True, False, True])),
}


@pytest.mark.parametrize("name", TYPED)
@pytest.mark.parametrize("raw", [False, True])
def test_every_element_type_is_read(tmp_path: Path, name: str, raw: bool) -> None:
    code, array = TYPED[name]
    tensor = helper.make_tensor("x", code, [3], array.tobytes() if raw else array, raw=raw)
    found = onnx_weights.read(write(tmp_path, tensor)).tensors["x"]
    assert (found.dtype.name, found.stored.tobytes()) == (name, array.tobytes())


def test_a_scalar_and_a_tensor_without_elements_are_read(tmp_path: Path) -> None:
    scalar = numpy_helper.from_array(np.array(7, np.int64), "s")
    found = onnx_weights.read(write(tmp_path, scalar, numpy_helper.from_array(np.zeros((0, 2), "f4"), "e"))).tensors
    assert (found["s"].shape, found["s"].stored.tobytes()) == ((), b"\7" + bytes(7))
    assert (found["e"].shape, found["e"].stored.nbytes) == ((0, 2), 0)
    typed = TensorProto(name="e", data_type=TensorProto.FLOAT, dims=[0])
    assert onnx_weights.read(write(tmp_path, typed)).tensors["e"].shape == (0,)


# ---- external data


def test_external_data_are_views_of_the_mapped_file(tmp_path: Path) -> None:
    path = write(tmp_path, external(tmp_path), external(tmp_path, "v", offset="0", length=""))
    found = onnx_weights.read(path).tensors
    assert found["w"].stored.tobytes() == WEIGHTS.tobytes()
    assert found["w"].stored.ctypes.data - found["v"].stored.ctypes.data == 8
    assert not found["w"].stored.flags.writeable


def test_external_data_by_the_reference_writer_are_read(tmp_path: Path) -> None:
    path = tmp_path / "tiny.onnx"
    model = model_of(numpy_helper.from_array(WEIGHTS, "w"), numpy_helper.from_array(WEIGHTS + 1, "v"))
    onnx.save(model, path, save_as_external_data=True, location="all.data", size_threshold=0)
    found = onnx_weights.read(path).tensors
    assert found["w"].stored.tobytes() == WEIGHTS.tobytes()
    assert found["v"].stored.tobytes() == (WEIGHTS + 1).tobytes()


def test_external_data_in_a_folder_below_are_read(tmp_path: Path) -> None:
    tensor = external(tmp_path, location="./sub/data.bin")
    (tmp_path / "sub").mkdir()
    (tmp_path / "data.bin").rename(tmp_path / "sub" / "data.bin")
    assert onnx_weights.read(write(tmp_path, tensor)).tensors["w"].stored.tobytes() == WEIGHTS.tobytes()


@pytest.mark.parametrize(
    "location", ["../data.bin", "/etc/passwd", "sub/../../data.bin", "..\\data.bin", "c:\\x", "x\0"]
)
def test_external_data_outside_the_folder_are_refused(tmp_path: Path, location: str) -> None:
    (tmp_path / "model").mkdir()
    path = write(tmp_path / "model", external(tmp_path, location=location))
    with pytest.raises(BadFileError, match=r"a file outside the model's folder is named: .*tensor 'w'"):
        onnx_weights.read(path)


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    path = write(tmp_path / "model", external(tmp_path, location="link.bin"))
    (tmp_path / "model" / "link.bin").symlink_to(tmp_path / "data.bin")
    with pytest.raises(BadFileError, match="a file outside the model's folder is named"):
        onnx_weights.read(path)
    (tmp_path / "model" / "link.bin").unlink()
    (tmp_path / "model" / "sub").symlink_to(tmp_path)
    with pytest.raises(BadFileError, match="a file outside the model's folder is named"):
        onnx_weights.read(write(tmp_path / "model", external(tmp_path, location="sub/data.bin")))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        NotFoundError, match=r"a file of external data is missing: .*gone\.bin; put it beside the model"
    ):
        onnx_weights.read(write(tmp_path, external(tmp_path, location="gone.bin")))


# ---- segments


def segments(*spans: tuple[int, int]) -> list[TensorProto]:
    pieces = []
    for begin, end in spans:
        piece = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 3])
        piece.raw_data = WEIGHTS.reshape(-1)[begin:end].tobytes()
        piece.segment.begin, piece.segment.end = begin, end
        pieces.append(piece)
    return pieces


def test_segments_are_put_together(tmp_path: Path) -> None:
    path = write(tmp_path, *segments((4, 6), (0, 1), (1, 4)))
    assert onnx_weights.read(path).tensors["w"].stored.tobytes() == WEIGHTS.tobytes()


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([(0, 2), (3, 6)], "the segments do not follow each other: .*got 3, expected one at 2"),
        ([(0, 4), (2, 6)], "the segments do not follow each other"),
        ([(0, 4)], "the segments do not fill the tensor: .*got 4, expected 6"),
    ],
)
def test_segments_with_gaps_or_overlaps_are_refused(tmp_path: Path, spans: list[tuple[int, int]], message: str) -> None:
    with pytest.raises(BadFileError, match=message):
        onnx_weights.read(write(tmp_path, *segments(*spans)))


# ---- damaged and hostile files: what is wrong -> the message, and the initializers


def floats(*dims: int, **fields: Any) -> TensorProto:
    return TensorProto(**({"name": "w", "data_type": TensorProto.FLOAT, "dims": dims, "raw_data": bytes(4)} | fields))


def typed(data_type: int, **fields: Any) -> TensorProto:
    return TensorProto(name="w", data_type=data_type, dims=[1], **fields)


HOSTILE: dict[str, tuple[str, Callable[[Path], list[TensorProto]]]] = {
    "negative dimension": (r"a wrong shape: .*got \[-1\]", lambda _: [floats(-1)]),
    "product of 2^80": ("a wrong shape", lambda _: [floats(1 << 40, 1 << 40)]),
    "nine dimensions": ("a wrong shape: .*at most 8", lambda _: [floats(*[1] * 9)]),
    "too few bytes": ("do not fit its shape: .*got 4, expected 8 bytes", lambda _: [floats(2)]),
    "bytes for none": ("do not fit its shape: .*got 4, expected 0", lambda _: [floats(0)]),
    "too few values": ("do not fit its shape", lambda _: [typed(TensorProto.DOUBLE)]),
    "values of another field": ("wrong field: .*got int32_data", lambda _: [typed(TensorProto.FLOAT, int32_data=[1])]),
    "value out of range": (
        "a value is out of range: .*got 300",
        lambda _: [typed(TensorProto.UINT8, int32_data=[300])],
    ),
    "negative half": ("a value is out of range", lambda _: [typed(TensorProto.FLOAT16, int32_data=[-1])]),
    "no type": ("unknown element type: .*got 0", lambda _: [floats(1, data_type=0)]),
    "unknown type": ("unknown element type: .*got 99", lambda _: [floats(1, data_type=99)]),
    "one name twice": ("two tensors have the same name: .*'w'", lambda _: [floats(1), floats(1)]),
    "one name, two shapes": ("two tensors have the same name", lambda _: [*segments((0, 6)), floats(1)]),
    "nameless": ("a tensor has no proper name", lambda _: [floats(1, name="")]),
    "no location": ("external data without a location", lambda p: [external(p, location="")]),
    "no number": ("with a wrong offset: .*got 'x'", lambda p: [external(p, offset="x")]),
    "negative offset": ("with a wrong offset: .*got '-8'", lambda p: [external(p, offset="-8")]),
    "offset without end": ("with a wrong offset", lambda p: [external(p, offset="9" * 5000)]),
    "offset past the end": ("runs past the end of data.bin: .*at least 37", lambda p: [external(p, offset="13")]),
    "another length": ("do not fit its shape: .*got 20", lambda p: [external(p, length="20")]),
    "itself for a file": ("runs past the end|do not fit", lambda p: [external(p, location="tiny.onnx", offset="9000")]),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_one_clear_error(tmp_path: Path, case: str) -> None:
    message, make = HOSTILE[case]
    path = write(tmp_path, *make(tmp_path))
    with pytest.raises(BadFileError, match=message) as caught:
        onnx_weights.read(path)
    assert str(caught.value).isprintable()
    assert caught.value.tensor is not None


def test_a_name_that_is_no_utf8_is_kept(tmp_path: Path) -> None:
    path = write(tmp_path, floats(1, name="wwww"), kkkk="vvvv")
    path.write_bytes(path.read_bytes().replace(b"wwww", b"w\xff\xfew").replace(b"kkkk", b"kk\xff\xff"))
    model = onnx_weights.read(path)
    assert list(model.tensors) == ["w\udcff\udcfew"]
    assert model.metadata["kk\udcff\udcff"] == "vvvv"


@pytest.mark.parametrize("code", ["STRING", "UINT64", "COMPLEX64", "INT4"])
def test_a_type_that_modelc_lacks_is_named(tmp_path: Path, code: str) -> None:
    with pytest.raises(UnsupportedError, match=f"element type {code} is not supported: .*tensor 'w'"):
        onnx_weights.read(write(tmp_path, floats(1, data_type=TensorProto.DataType.Value(code))))


def test_sparse_initializers_are_refused(tmp_path: Path) -> None:
    model = model_of()
    model.graph.sparse_initializer.add()
    (tmp_path / "x.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(UnsupportedError, match="sparse initializers"):
        onnx_weights.read(tmp_path / "x.onnx")


@pytest.mark.parametrize(
    ("content", "got"),
    [(b"hello, world", "text"), (b"<html>", "an HTML page"), (b"\x08\x09", "the bytes"), (b"GGUF", "GGUF")],
)
def test_something_else_under_the_name_is_called_what_it_is(tmp_path: Path, content: bytes, got: str) -> None:
    (tmp_path / "x.onnx").write_bytes(content)
    with pytest.raises(BadFileError, match=f"not an ONNX file, or a damaged one: .*got .*{got}"):
        onnx_weights.read(tmp_path / "x.onnx")


def test_every_truncation_is_an_error(tmp_path: Path) -> None:
    whole = write(tmp_path, numpy_helper.from_array(WEIGHTS, "w")).read_bytes()
    # What follows the graph (the opset) may be missing without a trace.
    for length in range(1, whole.find(WEIGHTS.tobytes()) + WEIGHTS.nbytes):
        (tmp_path / "x.onnx").write_bytes(whole[:length])
        with pytest.raises(BadFileError):
            onnx_weights.read(tmp_path / "x.onnx")


def test_a_folder_with_a_model_and_its_configuration_is_read(tmp_path: Path) -> None:
    write(tmp_path, numpy_helper.from_array(WEIGHTS, "w"))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    assert open_model(tmp_path).architecture == "bert"
