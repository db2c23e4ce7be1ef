import sys
from pathlib import Path

import pytest

from modelc.hub.pip_config import pip_config, standard_index


def environment(home: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home), "XDG_CONFIG_HOME": str(home / "config"), "XDG_CONFIG_DIRS": str(home / "xdg")} | more


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_file_that_is_named_wins_and_the_environment_over_it(tmp_path: Path) -> None:
    write(tmp_path / "config" / "pip" / "pip.conf", "[global]\nindex-url = https://user/simple/\n")
    named = write(tmp_path / "named.conf", "[global]\nindex-url = https://named/simple\n[download]\ncert = /x.pem\n")
    found = pip_config(environment(tmp_path, PIP_CONFIG_FILE=str(named)))
    assert found.indexes[0] == "https://named/simple"
    assert found.certificates == Path("/x.pem")
    found = pip_config(environment(tmp_path, PIP_CONFIG_FILE=str(named), PIP_INDEX_URL="https://env/simple/"))
    assert found.indexes[0] == "https://env/simple"


def test_further_indexes_follow_the_main_one_and_local_ones_are_left_out() -> None:
    extra = "https://a/simple file:///opt/simple\nhttps://b/simple"
    found = pip_config({"PIP_CONFIG_FILE": "/dev/null", "PIP_EXTRA_INDEX_URL": extra})
    assert found.indexes == (standard_index(), "https://a/simple", "https://b/simple")


def test_without_a_configuration_the_index_is_pip_s_own_and_without_pip_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert pip_config({"PIP_CONFIG_FILE": "/dev/null"}).indexes == (standard_index(),)
    assert standard_index().startswith("https://")
    monkeypatch.setitem(sys.modules, "pip._internal.models.index", None)
    assert pip_config({"PIP_CONFIG_FILE": "/dev/null"}).indexes == ()


def test_a_damaged_file_counts_as_missing(tmp_path: Path) -> None:
    named = write(tmp_path / "named.conf", "no section = 1\n")
    found = pip_config(environment(tmp_path, PIP_CONFIG_FILE=str(named), PIP_INDEX_URL="https://env/simple"))
    assert found.indexes[0] == "https://env/simple"
