"""GGUF files: what is written is what `gguf` and other readers read."""

from pathlib import Path

import gguf as other_gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelc.dtypes import DTYPES
from modelc.errors import UnsupportedError
from modelc.formats import gguf, gguf_writer
from modelc.formats.gguf_encoding import encode_key
from modelc.ir import JSON, Model, Tensor
from modelc.layout import to_lanes
from tests.formats.gguf_builder import small_gguf

Kind = other_gguf.GGUFValueType


def model_of(*tensors: Tensor, **metadata: JSON) -> Model:
    return Model("tiny", "llama", "gguf", metadata, {t.name: t for t in sorted(tensors, key=lambda t: t.name)})


def floats(name: str = "w", shape: tuple[int, ...] = (2, 32)) -> Tensor:
    stored = np.arange(np.prod(shape, dtype=int), dtype=np.float32).view(np.uint8)
    return Tensor(name, DTYPES["f32"], shape, stored)


def test_a_file_read_and_written_says_the_same(tmp_path: Path) -> None:
    first, second = tmp_path / "a.gguf", tmp_path / "b.gguf"
    first.write_bytes(small_gguf().build())
    before = gguf.read(first)
    gguf_writer.write(before, second)
    after = gguf.read(second)
    assert after.metadata == before.metadata
    assert list(after.tensors) == list(before.tensors)
    for name, tensor in after.tensors.items():
        assert (tensor.dtype, tensor.shape) == (before.tensors[name].dtype, before.tensors[name].shape)
        assert np.array_equal(tensor.stored, before.tensors[name].stored)


def test_another_reader_finds_every_tensor_aligned(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    values = np.random.default_rng(0).integers(0, 256, 3 * 34, np.uint8)
    gguf_writer.write(model_of(floats("a", (5,)), Tensor("b", DTYPES["q8_0"], (3, 32), values)), path)
    found = {tensor.name: tensor for tensor in other_gguf.GGUFReader(path).tensors}
    assert found["a"].data.tolist() == [0, 1, 2, 3, 4]
    assert found["b"].tensor_type == other_gguf.GGMLQuantizationType.Q8_0
    assert found["b"].shape.tolist() == [32, 3]
    assert np.array_equal(np.array(found["b"].data).reshape(-1).view(np.uint8), values)
    assert all(tensor.data_offset % 32 == 0 for tensor in found.values())


@pytest.mark.parametrize(
    ("key", "value", "kinds"),
    [
        ("llama.block_count", 30, [Kind.UINT32]),
        ("number", -1, [Kind.INT32]),
        ("number", 1 << 40, [Kind.UINT64]),
        ("number", -(1 << 40), [Kind.INT64]),
        ("number", 0.5, [Kind.FLOAT32]),
        ("number", 0.1, [Kind.FLOAT64]),
        ("llama.attention.layer_norm_rms_epsilon", 1e-5, [Kind.FLOAT32]),
        ("llama.rope.freq_base", 10000, [Kind.FLOAT32]),
        ("tokenizer.ggml.add_bos_token", True, [Kind.BOOL]),
        ("text", "ä\udcff", [Kind.STRING]),
        ("tokenizer.ggml.tokens", ["a", "b"], [Kind.ARRAY, Kind.STRING]),
        ("tokenizer.ggml.merges", [], [Kind.ARRAY, Kind.STRING]),
        ("tokenizer.ggml.token_type", [1, 3], [Kind.ARRAY, Kind.INT32]),
        ("tokenizer.ggml.scores", [0, -1.5], [Kind.ARRAY, Kind.FLOAT32]),
        ("tokenizer.ggml.precompiled_charsmap", [0, 255], [Kind.ARRAY, Kind.UINT8]),
        ("list", [1, 1 << 31], [Kind.ARRAY, Kind.UINT32]),
        ("list", [True, False], [Kind.ARRAY, Kind.BOOL]),
    ],
)
def test_values_have_the_types_that_llama_cpp_expects(
    tmp_path: Path, key: str, value: JSON, kinds: list[other_gguf.GGUFValueType]
) -> None:
    path = tmp_path / "a.gguf"
    gguf_writer.write(model_of(floats(), **{key: value}), path)
    field = other_gguf.GGUFReader(path).fields[key]
    assert field.types == (kinds if value != [] else kinds[:1])
    expected = pytest.approx(value) if key.endswith("epsilon") else value
    assert gguf.read(path).metadata[key] == expected


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.integers(-(1 << 63), (1 << 64) - 1) | st.floats(allow_nan=False)
LISTS = st.lists(TEXTS) | st.lists(st.booleans()) | st.lists(st.floats(allow_nan=False))
LISTS |= st.lists(st.integers(-(1 << 63), (1 << 63) - 1)) | st.lists(st.integers(0, (1 << 64) - 1))


@given(metadata=st.dictionaries(TEXTS.filter(bool), TEXTS | NUMBERS | st.booleans() | LISTS | st.lists(LISTS)))
def test_any_metadata_come_back(metadata: dict[str, JSON], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("gguf") / "a.gguf"
    gguf_writer.write(model_of(floats(), **metadata), path)
    assert gguf.read(path).metadata == {"general.architecture": "llama", **metadata}


def test_nested_lists_stay_nested(tmp_path: Path) -> None:
    gguf_writer.write(model_of(floats(), nested=[[1, 2], ["x"], []]), tmp_path / "a.gguf")
    assert gguf.read(tmp_path / "a.gguf").metadata["nested"] == [[1, 2], ["x"], []]


@pytest.mark.parametrize("value", [None, {"a": 1}, [1, "a"], [None], 1 << 64])
def test_what_gguf_has_no_type_for_is_named(value: JSON) -> None:
    with pytest.raises(UnsupportedError, match=r"the metadata key my\.key"):
        encode_key("my.key", value)


def test_an_architecture_without_a_key_gets_one(tmp_path: Path) -> None:
    gguf_writer.write(model_of(floats()), tmp_path / "a.gguf")
    assert gguf.read(tmp_path / "a.gguf").metadata == {"general.architecture": "llama"}


def test_another_alignment_of_the_source_is_forgotten(tmp_path: Path) -> None:
    gguf_writer.write(model_of(floats(), **{"general.alignment": 64}), tmp_path / "a.gguf")
    assert "general.alignment" not in gguf.read(tmp_path / "a.gguf").metadata


def test_tensors_in_kernel_layout_are_written_plain(tmp_path: Path) -> None:
    plain = np.random.default_rng(0).integers(0, 256, 20 * 18, np.uint8)
    stored = to_lanes(DTYPES["q4_0"], plain, 20, 32)
    gguf_writer.write(model_of(Tensor("w", DTYPES["q4_0"], (20, 32), stored, "lanes")), tmp_path / "a.gguf")
    assert np.array_equal(gguf.read(tmp_path / "a.gguf").tensors["w"].stored, plain)


def test_types_that_gguf_lacks_keep_their_values(tmp_path: Path) -> None:
    eighth = Tensor("e", DTYPES["f8_e5m2"], (2, 2), np.array([0x3C, 0xBC, 0x01, 0x40], np.uint8))
    flags = Tensor("f", DTYPES["bool"], (3,), np.array([0, 1, 1], np.uint8))
    bytes_ = Tensor("u", DTYPES["u8"], (), np.array([200], np.uint8))
    gguf_writer.write(model_of(eighth, flags, bytes_), tmp_path / "a.gguf")
    tensors = gguf.read(tmp_path / "a.gguf").tensors
    assert tensors["e"].stored.view(np.float16).tolist() == [1, -1, 2.0**-16, 2]
    assert tensors["f"].stored.view(np.int16).tolist() == [0, 1, 1]
    assert tensors["u"].stored.view(np.int16).tolist() == [200]


def test_what_gguf_cannot_hold_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    for tensor in (floats("w" * 64), floats("w", (1, 1, 1, 1, 32))):
        with pytest.raises(UnsupportedError):
            gguf_writer.write(model_of(tensor), tmp_path / "a.gguf")
    assert list(tmp_path.iterdir()) == []


def test_writing_twice_gives_the_same_bytes_and_progress_ends_at_the_total(tmp_path: Path) -> None:
    calls: list[tuple[int, int, str]] = []
    for name in ("a.gguf", "b.gguf"):
        gguf_writer.write(model_of(floats(), number=1), tmp_path / name, lambda *call: calls.append(call))
    assert (tmp_path / "a.gguf").read_bytes() == (tmp_path / "b.gguf").read_bytes()
    assert calls[-1] == (256, 256, "exporting")
