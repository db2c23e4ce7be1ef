"""What lists show of the models in a store.

A header holds a whole vocabulary, so the few facts that lists show are noted in the cache beside each file's size and
time, and a hundred models are listed without opening one.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from modelc.errors import ModelcError
from modelc.settings import cache_folder
from modelc.small_file import replace_text
from modelc.store import Store
from modelc.version import __version__

FACTS = ("architecture", "parameters", "file_bytes", "compression", "quantization")


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """One version of a model in a store, or a file that was put there by hand; facts are None where it is damaged."""

    name: str
    version: int | None  # None: put there by hand
    active: bool
    path: str
    architecture: str | None
    parameters: int | None  # logical elements of all tensors
    file_bytes: int | None
    compression: str | None  # "none" or "zstd"
    quantization: str | None  # the type of most parameters
    error: str | None  # what is wrong with the file


def inventory(store: Store) -> list[StoredVersion]:
    """Return all versions in `store`, by name and version; a damaged file does not hide the others."""
    note = _note_of(store)
    known = _read(note)
    noted: dict[str, Any] = {}
    found = []
    for name, version, path, active in _files(store):
        try:
            state = _state(path)
        except FileNotFoundError:  # deleted since the folder was read
            continue
        facts, error = _facts(path, state, known)
        if facts is not None:
            noted[path.name] = {"state": state, "facts": facts}
        values = facts or dict.fromkeys(FACTS)
        found.append(StoredVersion(name, version, active, str(path), **values, error=error))
    if noted != known:
        with contextlib.suppress(OSError):  # the next list takes longer
            replace_text(note, json.dumps({"modelc": __version__, "files": noted}))
    return found


def _files(store: Store) -> Iterator[tuple[str, int | None, Path, bool]]:
    for model in store.models():
        for version, path in model.versions.items():
            yield model.name, version, path, version == model.active
        if model.main is not None and model.active is None:
            yield model.name, None, model.main, True


def _facts(path: Path, state: list[int], known: dict[str, Any]) -> tuple[dict[str, Any] | None, str | None]:
    """The facts of one file, or what is wrong with it."""
    entry = known.get(path.name)
    if isinstance(entry, dict) and entry.get("state") == state and set(entry.get("facts", ())) == set(FACTS):
        return entry["facts"], None
    from modelc import summary

    try:
        model = summary.inspect(path)
    except ModelcError as error:
        return None, str(error)
    return {fact: getattr(model, fact) for fact in FACTS}, None


def _state(path: Path) -> list[int]:
    found = path.stat()
    return [found.st_size, found.st_mtime_ns, found.st_ino]


def _note_of(store: Store) -> Path:
    place = str(store.folder.absolute()).encode("utf-8", "surrogateescape")
    return cache_folder() / "listed" / f"{blake2b(place, digest_size=8).hexdigest()}.json"


def _read(note: Path) -> dict[str, Any]:
    try:
        content = json.loads(note.read_text("utf-8"))
        files: dict[str, Any] = content["files"] if content["modelc"] == __version__ else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return files if isinstance(files, dict) else {}
