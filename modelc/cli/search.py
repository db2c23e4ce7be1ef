"""`modelc search`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from modelc.cli.list import versions_table
from modelc.cli.options import JsonFlag, StoreOption, open_store, parse_size
from modelc.cli.text import count_text, table, terminal_width
from modelc.errors import BadInputError, NotFoundError, did_you_mean
from modelc.inventory import StoredVersion, inventory

EXAMPLES = """Examples:
  modelc search smol
  modelc search --arch llama --max-size 2GB
  modelc search --hub "smollm2 gguf" --limit 5"""


def search(
    query: Annotated[
        str, Parameter(help="Words that a model's name or architecture holds. [default: all models]")
    ] = "",
    /,
    *,
    arch: Annotated[str | None, Parameter(help="Only this architecture.")] = None,
    min_size: Annotated[str | None, Parameter(help="Only files of at least this size, like 500MB.")] = None,
    max_size: Annotated[str | None, Parameter(help="Only files of at most this size.")] = None,
    hub: Annotated[
        bool, Parameter(negative="", show_default=False, help="Ask the Hugging Face hub (HF_ENDPOINT) instead.")
    ] = False,
    limit: Annotated[int, Parameter(help="With --hub: most results.", validator=Number(gte=1, lte=1000))] = 20,
    json_: JsonFlag = False,
    store: StoreOption = None,
) -> None:
    """Find models in the store, or on the Hugging Face hub."""
    if hub:
        if min_size or max_size:
            raise BadInputError(
                "the hub does not tell sizes here", param="--min-size or --max-size", hint="leave it out"
            )
        _search_hub(" ".join(filter(None, [query, arch])), limit, json_)
        return
    least = parse_size(min_size, "--min-size") if min_size else 0
    most = parse_size(max_size, "--max-size") if max_size else None
    rows = inventory(open_store(store))
    found = [row for row in rows if _matches(row, query, arch) and _fits(row, least, most)]
    if json_:
        print(json.dumps([asdict(row) for row in found]))
    elif found:
        print(versions_table(found))
    else:
        hint = did_you_mean(query, {row.name for row in rows}) or "see `modelc list`, or ask the hub with --hub"
        raise NotFoundError("no model in the store matches", got=repr(query) if query else None, hint=hint)


def _matches(row: StoredVersion, query: str, arch: str | None) -> bool:
    text = f"{row.name} {row.architecture or ''}".casefold()
    return all(word in text for word in query.casefold().split()) and arch in (None, row.architecture)


def _fits(row: StoredVersion, least: int, most: int | None) -> bool:
    if row.file_bytes is None:
        return least == 0 and most is None
    return least <= row.file_bytes and (most is None or row.file_bytes <= most)


def _search_hub(query: str, limit: int, as_json: bool) -> None:
    from modelc.hub import search as search_hub

    found = search_hub(query, limit)
    if as_json:
        print(json.dumps([asdict(model) for model in found]))
    elif found:
        rows = [[m.id, count_text(m.downloads), count_text(m.likes), m.changed[:10], m.gated] for m in found]
        header = ["MODEL", "DOWNLOADS", "LIKES", "CHANGED", "GATED"]
        gives_way = ["LIKES", "CHANGED", "GATED"]
        print(table(header, rows, right="DOWNLOADS LIKES", width=terminal_width(), gives_way=gives_way))
    else:
        raise NotFoundError("no model on the hub matches", got=repr(query), hint="use fewer or other words")
