from pathlib import Path

import pytest

from modelc.formats import gguf as gguf_format
from modelc.formats.modelc import read_header
from tests.cli.conftest import Modelc


def test_export_of_a_stored_model(modelc: Modelc, gguf: Path, tmp_path: Path) -> None:
    assert modelc("pack", gguf, "--name", "tiny").code == 0
    output = tmp_path / "out.gguf"
    result = modelc("export", "tiny", "-o", output)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"exported {output} (")
    assert gguf_format.read(output).metadata == gguf_format.read(gguf).metadata


def test_export_says_what_is_wrong_in_one_line(modelc: Modelc, gguf: Path, tmp_path: Path) -> None:
    for tokens, code, words in (
        ([gguf, "-o", tmp_path / "out.bin"], 2, "expected gguf or safetensors"),
        (["nothing", "-o", tmp_path / "out.gguf"], 1, "nothing"),
        ([gguf], 2, "--output"),
        ([gguf, "-o", tmp_path / "no" / "out.gguf"], 2, "create"),
    ):
        result = modelc("export", *tokens)
        assert (result.code, result.out, result.err.count("\n")) == (code, "", 1)
        assert words in result.err


@pytest.mark.parametrize("type_", ["int8", "q4_k"])
def test_pack_quantizes(modelc: Modelc, gguf: Path, tmp_path: Path, type_: str) -> None:
    output = tmp_path / "out.modelc"
    result = modelc("pack", gguf, "-o", output, "--quantize", type_, "--keep", "blk.0.attn_q.weight=q5_1")
    assert (result.code, result.err) == (0, "")
    types = {entry.name: entry.dtype.name for entry in read_header(output).entries}
    assert types == {"blk.0.attn_q.weight": "q5_1", "blk.0.bias": "f16", "output_norm.weight": "f32"}


def test_pack_refuses_types_and_rules_that_make_no_sense(modelc: Modelc, gguf: Path) -> None:
    for tokens, words in (
        (["--quantize", "q4_q"], "did you mean 'q4_k'?"),
        (["--keep", "blk.0.atn_q.weight=q8_0"], "did you mean 'blk.0.attn_q.weight'?"),
        (["--prune", "-1"], "--prune"),
    ):
        result = modelc("pack", gguf, *tokens)
        assert result.code == 2
        assert words in result.err
