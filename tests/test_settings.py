import os
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from modelc.errors import BadFileError, BadInputError
from modelc.settings import KEYS, Settings, cache_folder, load_settings, store_folder


def config(folder: Path, text: str) -> Path:
    path = folder / "config.toml"
    path.write_text(text, "utf-8")
    return path


def test_without_file_and_environment_the_built_in_values_hold(tmp_path: Path) -> None:
    settings = load_settings(tmp_path / "missing.toml", {})
    assert settings == Settings()
    assert (settings.bind, settings.port, settings.compression) == ("127.0.0.1", 8080, "none")


def test_every_setting_can_be_configured() -> None:
    assert list(KEYS) == [field.name for field in fields(Settings)]


def test_the_file_is_read_and_the_environment_wins(tmp_path: Path) -> None:
    path = config(tmp_path, 'port = 9000\nbind = "::1"\nstore = "~/models"\ncompression = "zstd"\nthreads = 3\n')
    settings = load_settings(path, {"MODELC_PORT": "9001", "MODELC_DEFAULT_MODEL": "tiny", "MODELC_BIND": ""})
    assert (settings.port, settings.bind, settings.threads) == (9001, "::1", 3)
    assert (settings.compression, settings.default_model) == ("zstd", "tiny")
    assert settings.store == Path.home() / "models"


def test_the_file_is_found_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / ".modelc").mkdir()
    config(tmp_path / ".modelc", "port = 1234")
    assert load_settings(environ={}).port == 1234


def test_a_home_folder_that_is_closed_to_this_user_has_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "stat", refuse)
    assert load_settings(environ={}) == Settings()


def test_an_unknown_key_is_an_error_that_names_the_nearest(tmp_path: Path) -> None:
    path = config(tmp_path, "prot = 9000")
    with pytest.raises(BadInputError, match=r"unknown setting in .*config\.toml: 'prot'; did you mean 'port'\?"):
        load_settings(path, {})


def test_an_unknown_key_far_from_all_lists_the_known(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="the settings are bind, port, api_key"):
        load_settings(config(tmp_path, "zzz = 1"), {})


@pytest.mark.parametrize(
    "line",
    ["port = 65536", "port = -1", "port = true", 'port = "x"', "threads = 0", 'compression = "gzip"', "bind = 3"],
)
def test_a_wrong_value_is_an_error_that_names_key_and_file(tmp_path: Path, line: str) -> None:
    path = config(tmp_path, line)
    with pytest.raises(BadInputError) as caught:
        load_settings(path, {})
    assert caught.value.param == line.split(maxsplit=1)[0]
    assert str(path) in str(caught.value)


def test_a_wrong_value_in_the_environment_names_the_variable(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"environment variable MODELC_PORT.*got 'many', expected a whole number"):
        load_settings(tmp_path / "missing.toml", {"MODELC_PORT": "many"})


def test_a_near_miss_in_the_environment_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="did you mean 'threads'"):
        load_settings(tmp_path / "missing.toml", {"MODELC_TREADS": "3"})
    others = {"MODELC_TEST_MODELS": "x", "MODELC_DEBUG": "1", "MODELC_QQQ": "x", "TREADS": "3"}
    assert load_settings(tmp_path / "missing.toml", others) == Settings()


@pytest.mark.parametrize("content", [b"port = ", b"\xff\xfe", b"[[["])
def test_a_file_that_is_not_toml_is_a_bad_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(content)
    with pytest.raises(BadFileError, match="not a TOML file"):
        load_settings(path, {})


def test_folders_are_of_the_platform_unless_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("MODELC_CACHE", raising=False)
    assert store_folder(Settings()).parts[-2:] == ("modelc", "store")
    assert "modelc" in cache_folder().parts
    assert store_folder(Settings(store=tmp_path)) == tmp_path
    monkeypatch.setenv("MODELC_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path


@pytest.mark.skipif(sys.platform == "win32", reason="users have home folders there")
def test_without_a_home_folder_nothing_is_found_and_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(uid: int) -> None:
        raise KeyError(uid)

    for variable in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "MODELC_CACHE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    assert load_settings(environ={}) == Settings()
    for folder in (store_folder(Settings()), cache_folder()):
        assert not folder.exists()
        with pytest.raises(NotADirectoryError):
            folder.mkdir(parents=True)
