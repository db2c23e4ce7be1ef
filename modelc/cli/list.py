"""`modelc list`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from modelc.cli.options import JsonFlag, StoreOption, open_store
from modelc.cli.text import bytes_text, count_text, printable, table, terminal_width
from modelc.errors import ModelcError
from modelc.store import Store

EXAMPLES = """Examples:
  modelc list
  modelc list --json | jq -r '.[].name'"""
HEADER = ["NAME", "VERSION", "ARCHITECTURE", "PARAMETERS", "SIZE", "COMPRESSION", "QUANTIZATION"]
FACTS = ("architecture", "parameters", "file_bytes", "compression", "quantization")


def list_models(*, json_: JsonFlag = False, store: StoreOption = None) -> None:
    """List the models in the store; an asterisk marks the active version."""
    found = open_store(store)
    rows = list(_rows(found))
    if json_:
        print(json.dumps(rows))
    elif rows:
        print(table(HEADER, [_cells(row) for row in rows], right="PARAMETERS SIZE", width=terminal_width()))
    else:
        print(f"no models in {printable(str(found.folder))}; add one with `modelc pack`")


def _rows(store: Store) -> Iterator[dict[str, Any]]:
    for model in store.models():
        for version, path in model.versions.items():
            yield _row(model.name, version, path, active=version == model.active)
        if model.main is not None and model.active is None:  # put there by hand
            yield _row(model.name, None, model.main, active=True)


def _row(name: str, version: int | None, path: Path, *, active: bool) -> dict[str, Any]:
    row = {"name": name, "version": version, "active": active, "path": str(path)}
    from modelc import summary

    try:
        model = summary.inspect(path)
    except ModelcError as error:  # one damaged file does not hide the others
        return {**row, **dict.fromkeys(FACTS), "error": str(error)}
    return {**row, **{fact: getattr(model, fact) for fact in FACTS}, "error": None}


def _cells(row: dict[str, Any]) -> list[str]:
    version = f"{row['version'] or '-'}{'*' if row['active'] else ''}"
    if row["error"]:
        return [row["name"], version, "damaged: see `modelc verify`", "", "", "", ""]
    sizes = [count_text(row["parameters"]), bytes_text(row["file_bytes"])]
    return [row["name"], version, row["architecture"], *sizes, row["compression"], row["quantization"]]
