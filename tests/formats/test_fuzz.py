"""Whatever is in a file, the readers answer with a model or with a `ModelcError`, at once."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modelc.errors import ModelcError
from modelc.formats import detect, gguf, modelc, onnx_weights, open_model, pytorch, safetensors
from modelc.ir import Model
from tests.formats.gguf_builder import small_gguf
from tests.formats.modelc.artifacts import forge, tiny_model
from tests.formats.pytorch_builder import archive, state_dict, tensor, zip_of
from tests.formats.safetensors_builder import build, small_safetensors, write_shards

# Each example writes and reads a file of a few kilobytes: well below a millisecond.
FUZZ = settings(max_examples=100, deadline=5000, suppress_health_check=[HealthCheck.function_scoped_fixture])

NUMBERS = [0, 1, 7, 255, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 62, 1 << 63, (1 << 64) - 1]
GGUF = small_gguf().build()
SAFETENSORS = small_safetensors()
CHECKPOINT = archive(state_dict(a=tensor(), b=tensor((2, 2), (1, 2))))
PICKLE = state_dict(a=tensor(), b=tensor((2, 2), (1, 2)))

edits = st.lists(
    st.one_of(
        st.tuples(st.just("flip"), st.integers(0, 1 << 20), st.integers(0, 7)),
        st.tuples(st.just("number"), st.integers(0, 1 << 20), st.sampled_from(NUMBERS)),
        st.tuples(st.just("cut"), st.integers(0, 1 << 20), st.integers(0, 64)),
        st.tuples(st.just("repeat"), st.integers(0, 1 << 20), st.integers(1, 64)),
    ),
    min_size=1,
    max_size=4,
)


def edit(content: bytes, changes: list[tuple[str, int, int]], end: int) -> bytes:
    """Changes bytes at places below `end`."""
    data = bytearray(content)
    for kind, place, value in changes:
        at = place % max(1, min(end, len(data)))
        if kind == "flip" and data:
            data[at] ^= 1 << value
        elif kind == "number":
            data[at : at + 8] = value.to_bytes(8, "little")
        elif kind == "cut":
            del data[at : at + value]
        else:
            data[at:at] = data[at : at + value]
    return bytes(data) or b"\0"


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.sampled_from([*NUMBERS, -1, 10**300]), st.floats(), st.text(max_size=4)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=6,
)


def replace_one(header: dict[str, Any] | list[Any], data: st.DataObject) -> None:
    """Puts another value somewhere in `header`."""
    place: Any = header
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
            place = place[key]
            continue
        place[key] = data.draw(json_values)
        return


def answers(read: Callable[[Path], Model], path: Path) -> None:
    """A model whose tensors can be touched, or an error that prints as one line."""
    try:
        model = read(path)
    except ModelcError as error:
        assert str(error).isprintable()
    else:
        assert sum(int(tensor.stored.sum()) for tensor in model.tensors.values()) >= 0


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "x"


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "zstd"])
def artifact(request: pytest.FixtureRequest, path: Path) -> bytes:
    modelc.write(tiny_model(), path, compress=request.param)
    return path.read_bytes()


@pytest.fixture(scope="module")
def onnx_file() -> bytes:
    from onnx import TensorProto, helper

    inline = helper.make_tensor("a", TensorProto.FLOAT, [2], [1.0, 2.0])
    raw = helper.make_tensor("b", TensorProto.INT64, [1], bytes(8), raw=True)
    outside = TensorProto(name="c", data_type=TensorProto.UINT8, dims=[3], data_location=TensorProto.EXTERNAL)
    outside.external_data.add(key="location", value="x")
    graph = helper.make_graph([], "g", [], [], [inline, raw, outside])
    return bytes(helper.make_model(graph).SerializeToString())


@FUZZ
@given(head=st.sampled_from([b"", b"GGUF\3\0\0\0", b"GGUF", b"MODELC\x1a\n", b"PK\3\4"]), rest=st.binary(min_size=1))
def test_random_bytes(path: Path, head: bytes, rest: bytes) -> None:
    path.write_bytes(head + rest)
    answers(gguf.read, path)
    answers(modelc.read, path)
    answers(open_model, path)
    with contextlib.suppress(ModelcError):
        assert detect(path) in ("gguf", "modelc", "pytorch", "safetensors")


@FUZZ
@given(changes=edits)
def test_edited_gguf_files(path: Path, changes: list[tuple[str, int, int]]) -> None:
    path.write_bytes(edit(GGUF, changes, len(GGUF)))
    answers(gguf.read, path)


@FUZZ
@given(changes=edits)
def test_edited_safetensors_files(path: Path, changes: list[tuple[str, int, int]]) -> None:
    path.write_bytes(edit(SAFETENSORS, changes, len(SAFETENSORS)))
    answers(safetensors.read, path)
    answers(pytorch.read, path)


@FUZZ
@given(data=st.data())
def test_safetensors_headers_with_other_values(path: Path, data: st.DataObject) -> None:
    n_bytes = int.from_bytes(SAFETENSORS[:8], "little")
    header = json.loads(SAFETENSORS[8 : 8 + n_bytes])
    replace_one(header, data)
    path.write_bytes(build(header, SAFETENSORS[8 + n_bytes :]))
    answers(safetensors.read, path)


@FUZZ
@given(changes=edits, deflated=st.booleans())
def test_edited_zip_archives(path: Path, changes: list[tuple[str, int, int]], deflated: bool) -> None:
    content = zip_of({"model.safetensors": SAFETENSORS}, 8) if deflated else CHECKPOINT
    path.write_bytes(edit(content, changes, len(content)))
    answers(pytorch.read, path)


@FUZZ
@given(changes=edits)
def test_edited_pickles(path: Path, changes: list[tuple[str, int, int]]) -> None:
    path.write_bytes(archive(edit(PICKLE, changes, len(PICKLE))))
    answers(pytorch.read, path)


@FUZZ
@given(operations=st.lists(st.sampled_from([*b"().0]}aestuNq\0h\0RbQ2\x85\x86\x87\x88\x94"]), max_size=40))
def test_random_pickle_operations(path: Path, operations: list[int]) -> None:
    path.write_bytes(archive(PICKLE[:-1] + bytes(operations) + b"."))
    answers(pytorch.read, path)


@FUZZ
@given(changes=edits)
def test_edited_onnx_files(path: Path, onnx_file: bytes, changes: list[tuple[str, int, int]]) -> None:
    path.write_bytes(edit(onnx_file, changes, len(onnx_file)))
    answers(onnx_weights.read, path)


@FUZZ
@given(changes=edits)
def test_edited_modelc_files(path: Path, artifact: bytes, changes: list[tuple[str, int, int]]) -> None:
    changed = edit(artifact, changes, len(artifact))
    path.write_bytes(changed)
    answers(modelc.read, path)
    try:
        modelc.verify(path)
    except ModelcError:
        assert changed != artifact
    else:
        assert changed == artifact


@FUZZ
@given(changes=edits)
def test_headers_with_edited_text_and_a_valid_checksum(
    path: Path, artifact: bytes, changes: list[tuple[str, int, int]]
) -> None:
    path.write_bytes(artifact)
    forge(path, lambda header: edit(json.dumps(header).encode(), changes, 1 << 20))
    answers(modelc.read, path)
    with contextlib.suppress(ModelcError):
        modelc.verify(path)


@FUZZ
@given(data=st.data())
def test_headers_with_other_values_and_a_valid_checksum(path: Path, artifact: bytes, data: st.DataObject) -> None:
    path.write_bytes(artifact)
    forge(path, lambda header: replace_one(header, data))
    answers(modelc.read, path)
    with contextlib.suppress(ModelcError):
        modelc.verify(path)


@FUZZ
@given(data=st.data())
def test_folders_with_other_values_in_an_index_or_beside_the_weights(path: Path, data: st.DataObject) -> None:
    folder = path.with_name("folder")
    folder.mkdir(exist_ok=True)
    index = write_shards(folder)
    beside = {
        index.name: json.loads(index.read_bytes()),
        "config.json": {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4},
        "modules.json": [{"type": "models.Pooling"}],
        "tokenizer_config.json": {"chat_template": "{{ messages }}", "bos_token": "<s>"},
    }
    changed = data.draw(st.sampled_from(sorted(beside)))
    replace_one(beside[changed], data)
    for name, content in beside.items():
        (folder / name).write_text(json.dumps(content))
    answers(open_model, folder)
