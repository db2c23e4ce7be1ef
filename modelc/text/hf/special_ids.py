"""Begin, end and padding tokens of a Hugging Face model, from the files beside its `tokenizer.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FILES = ("generation_config", "config")


def named_id(name: str, metadata: Mapping[str, Any], ids: Mapping[str, int]) -> int | None:
    """The id of the `bos`, `eos`, `pad` … token; None when no file names one that exists.

    Args:
        name: The token's role.
        metadata: `tokenizer_config` names it by text; `generation_config` and `config` by id, or a list of ids.
        ids: Id of each token's text.
    """
    text = _object(metadata, "tokenizer_config").get(f"{name}_token")
    if isinstance(text, Mapping):
        text = text.get("content")
    if isinstance(text, str) and text in ids:
        return ids[text]
    return next(iter(_listed(name, metadata, set(ids.values()))), None)


def end_ids(metadata: Mapping[str, Any], ids: Mapping[str, int]) -> set[int]:
    """Every id that a file calls the end of a text."""
    ends = set(_listed("eos", metadata, set(ids.values())))
    named = named_id("eos", metadata, ids)
    return ends if named is None else ends | {named}


def _listed(name: str, metadata: Mapping[str, Any], known: set[int]) -> list[int]:
    found = []
    for file in FILES:
        value = _object(metadata, file).get(f"{name}_token_id")
        listed = value if isinstance(value, list) else [value]
        found += [token for token in listed if type(token) is int and token in known]
    return found


def _object(metadata: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = metadata.get(name)
    return value if isinstance(value, Mapping) else {}
