import json
from pathlib import Path

import pytest

from modelc.settings import KEYS
from tests.cli.conftest import Modelc


def test_each_setting_is_shown_with_its_source(
    modelc: Modelc, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".modelc").mkdir()
    path = home / ".modelc" / "config.toml"
    path.write_text('port = 9000\ncompression = "zstd"\n')
    monkeypatch.setenv("MODELC_PORT", "9001")
    found = json.loads(modelc("config", "--json").out)
    assert list(found) == list(KEYS)
    assert found["port"] == {"value": 9001, "source": "MODELC_PORT"}
    assert found["compression"] == {"value": "zstd", "source": str(path)}
    assert found["bind"] == {"value": "127.0.0.1", "source": "built in"}
    assert found["store"] == {"value": str(tmp_path / "store"), "source": "MODELC_STORE"}
    lines = modelc("config").out.splitlines()
    assert lines[0].split() == ["KEY", "VALUE", "SOURCE"]
    assert lines[2].split() == ["port", "9001", "MODELC_PORT"]


def test_the_store_is_shown_where_nobody_has_chosen_one(modelc: Modelc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MODELC_STORE")
    assert modelc("config", "store").out.endswith("store\n")


def test_one_value_alone_is_printed_for_scripts(modelc: Modelc) -> None:
    assert modelc("config", "port").out == "8080\n"
    assert modelc("config", "threads").out == "\n"


def test_the_key_of_the_server_is_not_shown(modelc: Modelc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELC_API_KEY", "secret")
    assert "secret" not in modelc("config").out + modelc("config", "--json").out + modelc("config", "api_key").out


def test_an_unknown_key_is_answered_with_the_nearest(modelc: Modelc) -> None:
    result = modelc("config", "prot")
    assert (result.code, result.err) == (2, "modelc: no such setting: got 'prot'; did you mean 'port'?\n")


def test_a_config_file_that_is_no_toml_is_one_line(modelc: Modelc, home: Path) -> None:
    (home / ".modelc").mkdir()
    (home / ".modelc" / "config.toml").write_text("port = [")
    result = modelc("config")
    assert result.code == 1
    assert "not a TOML file" in result.err
    assert result.err.count("\n") == 1
