"""Settings: built-in values, then `~/.modelc/config.toml`, then the environment (`MODELC_*`); flags win over all."""

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from modelc.errors import BadFileError, BadInputError, did_you_mean

PREFIX = "MODELC_"
OTHER_VARIABLES = ("MODELC_CACHE", "MODELC_DEBUG", "MODELC_TEST_MODELS")


@dataclass(frozen=True, slots=True)
class Settings:
    """What commands use where no flag says otherwise."""

    bind: str = "127.0.0.1"  # address `run` listens on
    port: int = 8080  # its TCP port
    api_key: str | None = None  # key that `run` asks of clients
    threads: int | None = None  # compute threads; None: the physical cores this process may use
    store: Path | None = None  # the store's folder; None: in the platform's data folder
    compression: str = "none"  # what `pack` does without --compress: "none" or "zstd"
    default_model: str | None = None  # the model `run` serves when none is named


@dataclass(frozen=True, slots=True)
class Setting:
    """A value that holds, and who says so."""

    value: Any
    source: str  # "built in", the config file's path, or an environment variable's name


def load_settings(path: Path | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """Read the config file, where there is one, and the environment.

    Args:
        path: the config file; None for `~/.modelc/config.toml`.
        environ: the environment; variables that are set to nothing count as unset.

    Raises:
        BadFileError: the config file is not TOML.
        BadInputError: an unknown key, or a value out of its range.
    """
    return Settings(**{key: setting.value for key, setting in _configured(path, environ).items()})


def effective_settings(path: Path | None = None, environ: Mapping[str, str] = os.environ) -> dict[str, Setting]:
    """Return every setting by name, with the folder that `store` means where nobody has chosen one.

    Arguments and errors are those of `load_settings`.
    """
    configured = _configured(path, environ)
    settings = Settings(**{key: setting.value for key, setting in configured.items()})
    found = {key: configured.get(key, Setting(getattr(settings, key), "built in")) for key in KEYS}
    found["store"] = Setting(store_folder(settings), found["store"].source)
    return found


def _configured(path: Path | None, environ: Mapping[str, str]) -> dict[str, Setting]:
    """What the config file and the environment say, checked."""
    path = _config_path() if path is None else path
    found: dict[str, Setting] = {}
    for key, value in _read_toml(path).items():
        found[key] = Setting(_checked(key, value, where=str(path)), str(path))
    for variable, text in environ.items():
        if not variable.startswith(PREFIX) or variable in OTHER_VARIABLES or not text:
            continue
        key = variable.removeprefix(PREFIX).lower()
        if key in KEYS or did_you_mean(key, KEYS):  # others may belong to another version of modelc
            found[key] = Setting(_checked(key, text, where=f"the environment variable {variable}"), variable)
    return found


def store_folder(settings: Settings) -> Path:
    """Return the folder of the store, which need not exist yet."""
    if settings.store is not None:
        return settings.store
    return _user_folder("data") / "store"


def cache_folder() -> Path:
    """Return the folder for what can be made again: `MODELC_CACHE`, or modelc's folder in the platform's cache."""
    if chosen := os.environ.get("MODELC_CACHE"):
        return Path(chosen)
    return _user_folder("cache")


def _user_folder(kind: Literal["data", "cache"]) -> Path:
    import platformdirs

    find = {"data": platformdirs.user_data_path, "cache": platformdirs.user_cache_path}[kind]
    with contextlib.suppress(RuntimeError):
        if (folder := find("modelc", appauthor=False)).is_absolute():
            return folder
    return Path(os.devnull, "modelc")  # no home folder is known: a place where nothing is, and nothing can be


def _config_path() -> Path | None:
    try:
        return Path.home() / ".modelc" / "config.toml"
    except RuntimeError:  # no home folder is known
        return None


def _read_toml(path: Path | None) -> dict[str, Any]:
    # In the home folder of somebody else, as `su` and `setpriv` leave it set, `Path.exists` may fail.
    if path is None or not os.path.exists(path):  # noqa: PTH110
        return {}
    import tomllib

    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadFileError("not a TOML file", path=path, got=str(error), hint="correct or remove the file") from error


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("a text")
    return value


def _whole(low: int, high: int) -> Callable[[object], int]:
    def check(value: object) -> int:
        number = int(value) if isinstance(value, str) and value.strip().isdecimal() else value
        if not isinstance(number, int) or isinstance(number, bool) or not low <= number <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return number

    return check


def _folder(value: object) -> Path:
    return Path(_text(value)).expanduser()


def _compression(value: object) -> str:
    if value not in ("none", "zstd"):
        raise ValueError('"none" or "zstd"')
    return str(value)


KEYS: dict[str, Callable[[object], Any]] = {
    "bind": _text,
    "port": _whole(1, 65535),
    "api_key": _text,
    "threads": _whole(1, 255),
    "store": _folder,
    "compression": _compression,
    "default_model": _text,
}


def _checked(key: str, value: object, where: str) -> Any:
    if key not in KEYS:
        hint = did_you_mean(key, KEYS) or f"the settings are {', '.join(KEYS)}"
        raise BadInputError(f"unknown setting in {where}", param=key, hint=hint)
    try:
        return KEYS[key](value)
    except ValueError as error:
        raise BadInputError(f"wrong setting in {where}", param=key, got=repr(value), expected=error) from None
