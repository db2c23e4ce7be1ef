import json
from pathlib import Path

from tests.cli.conftest import Modelc


def test_an_empty_store_says_how_to_fill_it(modelc: Modelc, tmp_path: Path) -> None:
    result = modelc("list")
    assert result.code == 0
    assert result.out == f"no models in {tmp_path / 'store'}; add one with `modelc pack`\n"
    assert json.loads(modelc("list", "--json").out) == []


def test_list_shows_every_version_and_marks_the_active_one(modelc: Modelc, gguf: Path) -> None:
    modelc("pack", gguf, "--name", "tiny")
    modelc("pack", gguf, "--name", "tiny", "--compress")
    modelc("pack", gguf, "--name", "other")
    lines = [line.split() for line in modelc("list").out.splitlines()]
    assert lines[0] == ["NAME", "VERSION", "ARCHITECTURE", "PARAMETERS", "SIZE", "COMPRESSION", "QUANTIZATION"]
    assert [line[:4] for line in lines[1:]] == [
        ["other", "1*", "llama", "75"],
        ["tiny", "1", "llama", "75"],
        ["tiny", "2*", "llama", "75"],
    ]
    assert [line[-2:] for line in lines[1:]] == [["none", "q8_0"], ["none", "q8_0"], ["zstd", "q8_0"]]


def test_list_as_json_has_every_fact(modelc: Modelc, gguf: Path, tmp_path: Path) -> None:
    modelc("pack", gguf, "--name", "tiny")
    path = tmp_path / "store" / "tiny.v1.modelc"
    assert json.loads(modelc("list", "--json").out) == [
        {
            "name": "tiny",
            "version": 1,
            "active": True,
            "path": str(path),
            "architecture": "llama",
            "parameters": 75,
            "file_bytes": path.stat().st_size,
            "compression": "none",
            "quantization": "q8_0",
            "error": None,
        }
    ]


def test_a_damaged_file_does_not_hide_the_others(modelc: Modelc, gguf: Path, tmp_path: Path) -> None:
    modelc("pack", gguf, "--name", "tiny")
    (tmp_path / "store" / "broken.modelc").write_bytes(b"MODELC\x1a\n")
    (tmp_path / "store" / ".half.part").write_bytes(b"")
    result = modelc("list")
    assert result.code == 0
    assert [line.split()[0] for line in result.out.splitlines()] == ["NAME", "broken", "tiny"]
    assert "damaged" in result.out
    broken = json.loads(modelc("list", "--json").out)[0]
    assert (broken["version"], broken["active"], broken["parameters"]) == (None, True, None)
    assert "broken.modelc" in broken["error"]
