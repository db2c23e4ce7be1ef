"""Models on the Hugging Face hub, or on a server with its protocol (`HF_ENDPOINT`)."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote as quoted
from urllib.parse import urlencode

from modelc.errors import NetworkError
from modelc.hub.choice import choose
from modelc.hub.client import Client
from modelc.hub.remote import Offer, RemoteFile, check_place

ENDPOINT = "https://huggingface.co"
DEFAULT_REVISION = "main"
SHA256 = re.compile(r"[0-9a-f]{64}")
SHA1 = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class HubModel:
    """A model as a search shows it."""

    id: str
    downloads: int
    likes: int
    changed: str  # ISO 8601
    gated: str  # "" for free ones, else "auto" or "manual": how access is granted


def endpoint() -> str:
    """The hub's address, without a slash at its end."""
    return (os.environ.get("HF_ENDPOINT") or ENDPOINT).rstrip("/")


def offer(client: Client, repository: str, revision: str | None, file: str | None, quant: str | None) -> Offer:
    """What the hub has under `user/model`.

    Args:
        client: for the requests.
        repository: `user/model`.
        revision: a branch, tag or commit; None for `main`.
        file: the file that the user wants.
        quant: the quantization that the user wants.

    Raises:
        ModelcError: no such model, no access, or no telling which file is meant.
    """
    base, headers = endpoint(), _headers()
    where = f"{base}/{repository}"
    path = f"/api/models/{repository}/revision/{quoted(revision or DEFAULT_REVISION, safe='')}?blobs=true"
    found, _ = client.get_json(base + path, headers)
    try:
        commit = str(found["sha"])
        entries = {str(entry["rfilename"]): entry for entry in found["siblings"]}
        sizes = {name: _size(entry) for name, entry in entries.items()}
    except (KeyError, TypeError, AttributeError):
        raise NetworkError("the hub's answer has another form than expected", path=where) from None
    chosen = choose(sizes, file, quant, where)
    folder = chosen[0].rpartition("/")[0]
    files = tuple(
        RemoteFile(
            name=name.removeprefix(f"{folder}/") if folder else name,
            url=f"{base}/{repository}/resolve/{quoted(commit, safe='')}/{quoted(check_place(name))}",
            size=sizes[name],
            digest=_digest(entries[name]),
            headers=headers,
        )
        for name in chosen
    )
    return Offer(repository.partition("/")[2], files, files[0].name, where)


def search(query: str, limit: int) -> list[HubModel]:
    """Ask the hub for models, those with most downloads first.

    Raises:
        ModelcError: the hub cannot be asked.
    """
    fields = [("expand[]", name) for name in ("downloads", "likes", "lastModified", "gated")]
    parameters = [("search", query), ("limit", str(limit)), ("sort", "downloads"), ("direction", "-1"), *fields]
    with Client() as client:
        url = f"{endpoint()}/api/models?{urlencode(parameters)}"
        found, _ = client.get_json(url, _headers())
    if not isinstance(found, list):
        raise NetworkError("the hub's answer has another form than expected", path=url)
    return [_hub_model(entry) for entry in found[:limit] if isinstance(entry, dict) and "id" in entry]


def _hub_model(entry: dict[str, Any]) -> HubModel:
    downloads, likes = entry.get("downloads"), entry.get("likes")
    return HubModel(
        id=str(entry["id"]),
        downloads=downloads if isinstance(downloads, int) else 0,
        likes=likes if isinstance(likes, int) else 0,
        changed=str(entry.get("lastModified") or ""),
        gated=str(entry.get("gated") or ""),
    )


def _headers() -> dict[str, str]:
    token = os.environ.get("HF_TOKEN")
    return {"Authorization": f"Bearer {token}"} if token else {}


def _size(entry: dict[str, Any]) -> int | None:
    size = (entry.get("lfs") or {}).get("size", entry.get("size"))
    return size if isinstance(size, int) else None


def _digest(entry: dict[str, Any]) -> str | None:
    """Of large files the hub tells the SHA-256, of small ones git's name of their content."""
    sha256 = str((entry.get("lfs") or {}).get("sha256", ""))
    if SHA256.fullmatch(sha256):
        return f"sha256:{sha256}"
    blob = str(entry.get("blobId", ""))
    return f"git-sha1:{blob}" if SHA1.fullmatch(blob) and entry.get("lfs") is None else None
