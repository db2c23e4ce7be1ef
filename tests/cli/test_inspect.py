import json
from pathlib import Path

import pytest

from tests.cli.conftest import Modelc
from tests.formats.gguf_builder import GGML_F32, Gguf
from tests.onnx.graphs import graph_model, node, value


@pytest.mark.parametrize("packed", [False, True])
def test_inspect_as_json_is_complete_and_the_same_after_packing(
    modelc: Modelc, gguf: Path, tmp_path: Path, packed: bool
) -> None:
    path = gguf
    if packed:
        path = tmp_path / "tiny.modelc"
        assert modelc("pack", gguf, "-o", path).code == 0
    found = json.loads(modelc("inspect", path, "--json").out)
    assert found["name"] == ("tiny-model" if packed else "Tiny-Model")
    assert found["format"] == ("modelc" if packed else "gguf")
    assert (found["architecture"], found["source_format"], found["compression"]) == ("llama", "gguf", "none")
    assert (found["parameters"], found["total_bytes"], found["quantization"]) == (75, 106, "q8_0")
    assert found["file_bytes"] == path.stat().st_size
    assert found["tensors"] == [
        {"name": "blk.0.attn_q.weight", "dtype": "q8_0", "shape": [2, 32], "parameters": 64, "bytes": 68},
        {"name": "blk.0.bias", "dtype": "f16", "shape": [3], "parameters": 3, "bytes": 6},
        {"name": "output_norm.weight", "dtype": "f32", "shape": [8], "parameters": 8, "bytes": 32},
    ]
    assert found["metadata"]["general.name"] == "Tiny"
    assert len(found["metadata"]["tokenizer.ggml.tokens"]) == 6
    assert found["metadata"]["number.u64"] == 2**64 - 1


def test_inspect_shows_summary_tensors_and_metadata(modelc: Modelc, gguf: Path) -> None:
    text = modelc("inspect", gguf).out
    for line in ("architecture  llama", "parameters    75 (75)", "total size    106 B (106 bytes)"):
        assert line in text
    assert "blk.0.attn_q.weight  q8_0  2x32   68 B" in text
    assert text.index("blk.0.bias") < text.index("output_norm.weight") < text.index("METADATA")


def test_inspect_abbreviates_lists_and_escapes_what_could_steer_the_terminal(modelc: Modelc, tmp_path: Path) -> None:
    file = Gguf().text("general.architecture", "llama").text("evil", "\x1b[2J\nx").text("long", "y" * 1000)
    file.strings("list", [str(number) for number in range(1000)]).tensor("a\x1b[31m", [8], GGML_F32, bytes(32))
    path = tmp_path / "evil.gguf"
    path.write_bytes(file.build())
    text = modelc("inspect", path).out
    assert '["0", "1", "2", "3", … 1,000 values]' in text
    assert "\x1b" not in text
    assert "\\x1b[2J\\nx" in text
    assert max(map(len, text.splitlines())) <= 160


def test_inspect_filters_tensors_by_pattern(modelc: Modelc, gguf: Path) -> None:
    found = json.loads(modelc("inspect", gguf, "--tensors", "blk.*", "--json").out)
    assert [tensor["name"] for tensor in found["tensors"]] == ["blk.0.attn_q.weight", "blk.0.bias"]
    assert found["parameters"] == 75
    result = modelc("inspect", gguf, "--tensors", "blk.0.bais")
    assert result.code == 1
    assert "did you mean 'blk.0.bias'?" in result.err


def test_inspect_takes_a_name_in_the_store(modelc: Modelc, gguf: Path) -> None:
    modelc("pack", gguf, "--name", "tiny")
    assert json.loads(modelc("inspect", "tiny", "--json").out)["name"] == "tiny"


def test_inspect_as_json_is_strict_json_even_with_nan(modelc: Modelc, tmp_path: Path) -> None:
    file = Gguf().text("general.architecture", "llama").key("nan", 6, b"\0\0\xc0\x7f").key("inf", 6, b"\0\0\x80\x7f")
    path = tmp_path / "nan.gguf"
    path.write_bytes(file.tensor("a", [8], GGML_F32, bytes(32)).build())
    text = modelc("inspect", path, "--json").out
    assert json.loads(text, parse_constant=pytest.fail)["metadata"]["nan"] == "nan"


def test_inspect_of_an_unknown_file_says_what_it_looks_like(modelc: Modelc, tmp_path: Path) -> None:
    path = tmp_path / "page"
    path.write_text("<!doctype html><html>not found</html>")
    result = modelc("inspect", path)
    assert result.code == 1
    assert "an HTML page" in result.err


def test_inspect_shows_what_other_types_would_take(modelc: Modelc, gguf: Path) -> None:
    found = {row["dtype"]: row for row in json.loads(modelc("inspect", gguf, "--quant-sizes", "--json").out)}
    # 64, 3 and 8 elements
    sizes = {"fp32": 300, "fp16": 150, "int8": 75, "int4": 32 + 2 + 4, "q4_0": 18 * (2 + 1 + 1)}
    assert {name: row["bytes"] for name, row in found.items()} == sizes
    assert found["fp32"]["change_percent"] == pytest.approx(100 * (300 - 106) / 106)
    lines = modelc("inspect", gguf, "--quant-sizes").out.splitlines()
    assert lines[0].split() == ["TYPE", "MB", "CHANGE%"]
    assert lines[-1].split() == ["q4_0", "0.00", "-32.1"]


def test_inspect_writes_a_model_card(modelc: Modelc, gguf: Path) -> None:
    result = modelc("inspect", gguf, "--readme")
    assert (result.code, result.err) == (0, "")
    assert "# Tiny" in result.out.splitlines()
    assert modelc("inspect", gguf, "--readme", "--json").code == 2


def test_inspect_takes_the_format_where_the_name_is_wrong(modelc: Modelc, gguf: Path) -> None:
    misnamed = gguf.rename(gguf.with_suffix(".onnx"))
    assert modelc("inspect", misnamed, "-f", "gguf").code == 0
    assert modelc("inspect", misnamed, "-f", "gguff").code == 2


def test_inspect_shows_inputs_outputs_and_operators_of_a_graph(modelc: Modelc, tmp_path: Path) -> None:
    path = tmp_path / "graph.onnx"
    nodes = [node("Exp", ["x"], ["a"]), node("Exp", ["a"], ["b"]), node("Strange", ["b"], ["y"])]
    path.write_bytes(graph_model(nodes, [value("x", shape=["batch", 4])], ["y"]).SerializeToString())
    text = modelc("inspect", path).out
    assert "in     x     f32 [batch, 4]" in text
    assert "operators      Exp 2, Strange 1" in text and "not supported  Strange" in text
    assert "execution_plan" not in text
    graph = json.loads(modelc("inspect", path, "--json").out)["graph"]
    assert (graph["operators"], graph["unsupported"]) == ({"Exp": 2, "Strange": 1}, ["Strange"])
    assert graph["inputs"] == [{"name": "x", "type": "f32", "shape": ["batch", 4]}]
    refused = modelc("run", path, "--port", "0")
    assert refused.code == 1 and "the operator 'Strange' is not supported" in refused.err
