import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Modelc
from tests.cli.processor_time import processor_s

LIST_S = 0.35


def test_an_empty_store_says_how_to_fill_it(modelc: Modelc, tmp_path: Path) -> None:
    result = modelc("list")
    assert result.code == 0
    assert result.out == f"no models in {tmp_path / 'store'}; add one with `modelc pull` or `modelc pack`\n"
    assert json.loads(modelc("list", "--json").out) == []


def test_list_shows_every_version_and_marks_the_active_one(modelc: Modelc, gguf: Path) -> None:
    modelc("pack", gguf, "--name", "tiny")
    modelc("pack", gguf, "--name", "tiny", "--compress")
    modelc("pack", gguf, "--name", "other")
    lines = [line.split() for line in modelc("list").out.splitlines()]
    assert lines[0] == [
        "NAME",
        "VERSION",
        "ACTIVE",
        "ARCHITECTURE",
        "PARAMETERS",
        "SIZE",
        "COMPRESSION",
        "QUANTIZATION",
    ]
    assert [line[:5] for line in lines[1:]] == [
        ["other", "1", "*", "llama", "75"],
        ["tiny", "1", "llama", "75", lines[2][4]],
        ["tiny", "2", "*", "llama", "75"],
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


@pytest.mark.parametrize(
    ("columns", "titles"),
    [(60, "NAME VERSION ACTIVE PARAMETERS SIZE QUANTIZATION"), (40, "NAME VERSION SIZE QUANTIZATION")],
)
def test_columns_give_way_where_the_terminal_is_narrow(
    modelc: Modelc, gguf: Path, monkeypatch: pytest.MonkeyPatch, columns: int, titles: str
) -> None:
    modelc("pack", gguf, "--name", "tiny")
    monkeypatch.setattr("modelc.cli.list.terminal_width", lambda: columns)
    lines = modelc("list").out.splitlines()
    assert lines[0].split() == titles.split()
    assert all(len(line) <= columns for line in lines)


def test_a_long_name_is_cut_last(modelc: Modelc, gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modelc("pack", gguf, "--name", "a-model-with-quite-a-long-name")
    monkeypatch.setattr("modelc.cli.list.terminal_width", lambda: 40)
    assert modelc("list").out.splitlines()[1].split()[:2] == ["a-model…", "1"]


def test_a_hundred_models_are_listed_at_once(modelc: Modelc, gguf: Path, tmp_path: Path) -> None:
    modelc("pack", gguf, "--name", "tiny")
    for number in range(99):
        os.link(tmp_path / "store" / "tiny.v1.modelc", tmp_path / "store" / f"tiny{number}.v1.modelc")
    assert len(modelc("list", "--quiet").out.splitlines()) == 100
    assert processor_s("list", tries=4) < LIST_S  # the first one takes notes


def test_quiet_prints_names_for_scripts(modelc: Modelc, gguf: Path) -> None:
    assert modelc("list", "--quiet").out == ""
    for name in ("tiny", "tiny", "other"):
        modelc("pack", gguf, "--name", name)
    assert modelc("list", "-q").out == "other\ntiny\n"
