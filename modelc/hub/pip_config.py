"""Where pip gets packages from on this machine: its environment variables and configuration files."""

from __future__ import annotations

import configparser
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

SECTIONS = ("global", "download", "install")


@dataclass(frozen=True, slots=True)
class PipConfig:
    """What concerns downloads.

    Attributes:
        indexes: addresses of simple indexes, the main one first.
        certificates: a file of certificates to trust; None for the usual ones.
    """

    indexes: tuple[str, ...]
    certificates: Path | None


def pip_config(environ: Mapping[str, str] = os.environ) -> PipConfig:
    """Read pip's configuration; files that cannot be read count as missing, as they do for other programs."""
    values: dict[str, str] = {}
    for path in _config_files(environ):
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read(path, "utf-8")
        except (configparser.Error, UnicodeDecodeError):
            continue
        for section in SECTIONS:
            if parser.has_section(section):
                values |= {key.replace("_", "-"): value for key, value in parser.items(section)}
    for key in ("index-url", "extra-index-url", "cert"):
        if found := environ.get(f"PIP_{key.upper().replace('-', '_')}"):
            values[key] = found
    indexes = [values.get("index-url") or standard_index(), *values.get("extra-index-url", "").split()]
    remote = [url.strip().rstrip("/") for url in indexes if url.strip().startswith(("http://", "https://"))]
    certificates = values.get("cert")
    return PipConfig(tuple(dict.fromkeys(remote)), Path(certificates) if certificates else None)


def standard_index() -> str:
    """The index that pip uses when none is configured; nothing where there is no pip."""
    try:
        return str(import_module("pip._internal.models.index").PyPI.simple_url)
    except (ImportError, AttributeError):
        return ""


def _config_files(environ: Mapping[str, str]) -> list[Path]:
    """The files that pip reads, later ones win."""
    chosen = environ.get("PIP_CONFIG_FILE")
    if chosen == os.devnull:
        return []
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or "~").expanduser()
    name = "pip.ini" if sys.platform == "win32" else "pip.conf"
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    folders = [home / ".pip", config / "pip", Path(sys.prefix)]
    if sys.platform == "win32":
        folders = [Path(environ.get("APPDATA") or home) / "pip", Path(sys.prefix)]
    elif sys.platform == "darwin":
        folders.insert(1, home / "Library" / "Application Support" / "pip")
    shared = [Path(folder) / "pip" for folder in environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")]
    system = [Path("/etc")] if sys.platform != "win32" else []
    files = [folder / name for folder in [*shared, *system, *folders]]
    return [*files, Path(chosen)] if chosen else files
