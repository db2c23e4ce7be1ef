"""A loaded graph: what users give and get."""

import re
import threading
from pathlib import Path

import numpy as np
import pytest

import modelc
from modelc.errors import BadInputError, ModelcError, UnsupportedError
from modelc.kernels.special_functions import PLAIN, WITH_PARAMETERS
from modelc.onnx import KERNELS, OnnxEncoder, OnnxModel
from modelc.runtime.loading import loaded_model
from modelc.runtime.options import Options
from tests.onnx.graphs import graph_model, node, opened, value

f32 = np.float32
WEIGHT = np.arange(12, dtype=f32).reshape(4, 3)


def two_inputs() -> OnnxModel:
    """y = x @ w + offset, and n = 2 * count."""
    nodes = [
        node("MatMul", ["x", "w"], ["m"]),
        node("Add", ["m", "offset"], ["y"]),
        node("Add", ["count", "count"], ["n"]),
    ]
    inputs = [value("x", shape=["batch", 4]), value("offset", shape=[3]), value("count", shape=[], dtype=np.int32)]
    loaded = loaded_model(opened(graph_model(nodes, inputs, ["y", "n"], {"w": WEIGHT})), Options(1))
    assert isinstance(loaded, OnnxModel)
    return loaded


GIVEN = {"x": [[1, 0, 0, 2]], "offset": [0.5, 0, 0], "count": 3}


def test_inputs_and_outputs_have_names() -> None:
    with two_inputs() as model:
        found = model.infer(GIVEN)
    assert found["y"].tolist() == [[18.5, 21, 24]] and found["y"].dtype == f32
    assert found["n"] == 6 and found["n"].dtype == np.int32


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"x": [[1, 2, 3]]}, r"a wrong shape: 'x': got f32 \[1, 3\], expected f32 \[batch, 4\]"),
        ({"x": [1, 2, 3, 4]}, r"a wrong shape: 'x'"),
        ({"x": [[1, 2], [3]]}, "rows of different lengths: 'x'"),
        ({"x": [["a"] * 4]}, "not numbers: 'x'"),
        ({"count": 1.5}, r"not whole numbers: 'count': got f64, expected i32 \[\]"),
        ({"count": 1 << 40}, "a number is out of range: 'count'"),
        ({"ofset": [1]}, "no such input: 'ofset': expected x, offset, count; did you mean 'offset'"),
        ({"x": {"a": 1}}, "not numbers: 'x'"),
    ],
)
def test_a_wrong_input_is_named_with_what_it_should_be(changed: dict, message: str) -> None:
    with two_inputs() as model, pytest.raises(BadInputError, match=message):
        model.infer({**GIVEN, **changed})


def test_a_missing_input_and_a_value_without_a_name_say_which_inputs_there_are() -> None:
    with two_inputs() as model:
        with pytest.raises(BadInputError, match=r"an input is missing: 'count': expected i32 \[\]"):
            model.infer({"x": [[1, 2, 3, 4]], "offset": [0, 0, 0]})
        with pytest.raises(BadInputError, match=r"several inputs by name: .*x: f32"):
            model.infer([1, 2, 3])


def test_a_graph_with_one_input_takes_the_value_alone_with_or_without_a_batch() -> None:
    proto = graph_model([node("MatMul", ["x", "w"], ["y"])], [value("x", shape=["n", 4])], ["y"], {"w": WEIGHT})
    with loaded_model(opened(proto), Options(1)) as model:
        assert model.infer([1, 0, 0, 0]).tolist() == [0, 1, 2]
        assert model.infer([[1, 0, 0, 0], [0, 1, 0, 0]]).tolist() == [[0, 1, 2], [3, 4, 5]]
        assert list(model.infer({"x": [[1, 0, 0, 0]]})) == ["y"]


def test_what_a_graph_cannot_do_says_what_it_can() -> None:
    with (
        two_inputs() as model,
        pytest.raises(UnsupportedError, match="an ONNX graph cannot generate text; it can turn"),
    ):
        model.generate("hello")


def test_calls_from_many_threads_are_answered_each_with_its_own() -> None:
    with two_inputs() as model:
        wrong = []

        def ask(i: int) -> None:
            for _ in range(20):
                if model.infer({**GIVEN, "count": i})["n"] != 2 * i:
                    wrong.append(i)

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_examples_for_measuring_are_taken() -> None:
    with two_inputs() as model:
        assert model.infer(model.example_inputs(5))["y"].shape == (5, 3)


def test_a_closed_model_says_so() -> None:
    model = two_inputs()
    model.close()
    model.close()
    with pytest.raises(ModelcError, match="the model is closed"):
        model.infer(GIVEN)


def test_the_profile_has_each_operator() -> None:
    with two_inputs() as model:
        assert model.profile_report() == "profile: nothing ran"
        model.start_profile()
        for _ in range(3):
            model.infer(GIVEN)
        report = model.profile_report()
    assert "profile: 3 runs" in report and "MatMul" in report and "Add" in report


def test_a_packed_graph_runs_without_its_source(tmp_path: Path) -> None:
    proto = graph_model([node("MatMul", ["x", "w"], ["y"])], [value("x", shape=["n", 4])], ["y"], {"w": WEIGHT})
    source = tmp_path / "g.onnx"
    source.write_bytes(proto.SerializeToString())
    packed = modelc.pack(source, tmp_path / "g.modelc", compress=True)
    source.unlink()
    with modelc.load(packed, threads=1) as model:
        assert model.infer({"x": [[1, 0, 0, 0]]})["y"].tolist() == [[0, 1, 2]]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, np.int8])
@pytest.mark.parametrize("rows", [1, 16, 37])
def test_packed_matrices_are_read_as_they_were(tmp_path: Path, dtype: type, rows: int) -> None:
    weight = np.arange(rows * 5).reshape(rows, 5).astype(dtype)
    proto = graph_model([node("Identity", ["w"], ["y"])], [], ["y"], {"w": weight})
    (tmp_path / "g.onnx").write_bytes(proto.SerializeToString())
    packed = modelc.pack(tmp_path / "g.onnx", tmp_path / "g.modelc")
    with modelc.load(packed, threads=1) as model:
        assert np.array_equal(model.infer({})["y"], weight)


def test_quantized_matrices_are_read_as_floats(tmp_path: Path) -> None:
    weight = np.random.default_rng(0).standard_normal((20, 64)).astype(f32)
    proto = graph_model([node("MatMul", ["x", "w"], ["y"])], [value("x", shape=["n", 20])], ["y"], {"w": weight})
    (tmp_path / "g.onnx").write_bytes(proto.SerializeToString())
    packed = modelc.pack(tmp_path / "g.onnx", tmp_path / "g.modelc", quantize="q8_0")
    with modelc.load(packed, threads=1) as model:
        assert np.allclose(model.infer(np.eye(20, dtype=f32)), weight, atol=0.02)


def test_a_graph_without_weights_can_be_packed(tmp_path: Path) -> None:
    proto = graph_model([node("Exp", ["x"], ["y"])], [value("x", shape=["n"])], ["y"])
    (tmp_path / "g.onnx").write_bytes(proto.SerializeToString())
    packed = modelc.pack(tmp_path / "g.onnx", tmp_path / "g.modelc")
    with modelc.load(packed, threads=1) as model:
        assert model.infer([0]).tolist() == [1]


TOKENIZER = {
    "model": {
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
        "vocab": {"[UNK]": 0, "a": 1, "b": 2, "c": 3},
    },
    "normalizer": {"type": "BertNormalizer", "lowercase": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": None,
    "decoder": None,
    "added_tokens": [],
}


def encoder(output: str = "last_hidden_state") -> OnnxEncoder:
    """Hidden states are rows of a table, times the mask."""
    nodes = [
        node("Gather", ["table", "input_ids"], ["g"]),
        node("Unsqueeze", ["attention_mask", "last"], ["u"]),
        node("Cast", ["u"], ["m"], to=1),
        node("Mul", ["g", "m"], [output]),
    ]
    inputs = [value(name, shape=["b", "t"], dtype=np.int64) for name in ("input_ids", "attention_mask")]
    table = np.arange(8, dtype=f32).reshape(4, 2)
    model = opened(graph_model(nodes, inputs, [output], {"table": table, "last": np.array([2])}))
    model.metadata["tokenizer"] = TOKENIZER
    loaded = loaded_model(model, Options(1))
    assert isinstance(loaded, OnnxEncoder)
    return loaded


def test_an_encoder_with_a_tokenizer_embeds_texts() -> None:
    with encoder() as model:
        assert model.embed("a b").tolist() == [3, 4]  # the mean of rows 1 and 2
        both = model.embed(["a b c", "c", "b a c"])
        assert both.tolist() == [[4, 5], [6, 7], [4, 5]]
        assert np.array_equal(both[1], model.embed("c"))
        assert model.hidden([3, 1]).tolist() == [[6, 7], [2, 3]]
        with pytest.raises(BadInputError, match="no such token"):
            model.embed([[9]])


def test_an_encoder_that_pools_itself_is_taken_at_its_word() -> None:
    with encoder("sentence_embedding") as model:
        assert model.embed("c").shape == (1, 2)
        with pytest.raises(UnsupportedError):
            model.hidden([1])


def test_every_kernel_that_the_package_names_is_built_ahead_of_time() -> None:
    source = Path(modelc.__file__).parent / "onnx"
    named = {name for path in source.rglob("*.py") for name in re.findall(r'"(array_\w+)', path.read_text("utf-8"))}
    assert {name.partition(".")[0] for name in KERNELS} - {"execute", "worker"} == named


def test_every_function_of_elements_is_built_ahead_of_time() -> None:
    found = {name.partition(".")[2] for name in KERNELS if name.startswith("array_map.")}
    assert found == PLAIN.keys() | WITH_PARAMETERS.keys()
