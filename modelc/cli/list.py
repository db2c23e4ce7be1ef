"""`modelc list`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from modelc.cli.colour import DIM, paint
from modelc.cli.options import JsonFlag, StoreOption, open_store
from modelc.cli.text import bytes_text, count_text, printable, table, terminal_width
from modelc.inventory import StoredVersion, inventory

EXAMPLES = """Examples:
  modelc list
  modelc list --quiet
  modelc list --json | jq -r '.[] | select(.active) | .name'"""
HEADER = ["NAME", "VERSION", "ACTIVE", "ARCHITECTURE", "PARAMETERS", "SIZE", "COMPRESSION", "QUANTIZATION"]
GIVES_WAY = ["COMPRESSION", "ARCHITECTURE", "PARAMETERS", "ACTIVE"]


def list_models(
    *,
    json_: JsonFlag = False,
    quiet: Annotated[
        bool, Parameter(name=["--quiet", "-q"], negative="", show_default=False, help="Print names only.")
    ] = False,
    store: StoreOption = None,
) -> None:
    """List the models in the store; an asterisk marks the active version, which the name alone stands for."""
    found = open_store(store)
    if quiet:
        print("".join(f"{model.name}\n" for model in found.models()), end="")
        return
    rows = inventory(found)
    if json_:
        print(json.dumps([asdict(row) for row in rows]))
    elif rows:
        print(versions_table(rows))
    else:
        print(f"no models in {printable(str(found.folder))}; add one with `modelc pull` or `modelc pack`")


def versions_table(rows: Sequence[StoredVersion]) -> str:
    """Return a table of models for the terminal, one version a line."""
    text = table(
        HEADER, [_cells(row) for row in rows], right="PARAMETERS SIZE", width=terminal_width(), gives_way=GIVES_WAY
    )
    title, _, body = text.partition("\n")
    return f"{paint(title, DIM, sys.stdout)}\n{body}"


def _cells(row: StoredVersion) -> list[str]:
    start = [row.name, str(row.version or "-"), "*" if row.active else ""]
    if row.parameters is None or row.file_bytes is None:
        return [*start, "damaged", "", "", "", "see `modelc verify`"]
    sizes = [count_text(row.parameters), bytes_text(row.file_bytes)]
    return [*start, row.architecture or "", *sizes, row.compression or "", row.quantization or ""]
