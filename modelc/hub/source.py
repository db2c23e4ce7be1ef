"""What `pull` is asked for: from the text of an ID to a source, and from the source to an offer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from modelc.errors import BadInputError
from modelc.hub import huggingface, ollama, packages, web
from modelc.hub.client import Client
from modelc.hub.pip_config import pip_config
from modelc.hub.remote import Offer

REPOSITORY = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)(?::(?P<quant>[\w.-]+))?", re.ASCII)
HUB_PAGE = re.compile(
    r"(?P<repository>[\w.-]+/[\w.-]+)(?:/(?:blob|resolve|tree)/(?P<revision>[^/?]+)(?:/(?P<file>[^?]+))?)?/?(?:\?.*)?",
    re.ASCII,
)
SHORT_HUB = ("hf.co/", "huggingface.co/", "hf:")
EXPECTED = "user/model, an http(s):// URL, pypi:NAME, or ollama:NAME:TAG"


@dataclass(frozen=True, slots=True)
class Wish:
    """Which model, and which state and file of it.

    Attributes:
        id: as the user has written it.
        version: a branch, tag or commit on the hub, a package's version, or Ollama's tag.
        file: path, name or pattern of the file.
        quant: quantization of the file, like `Q4_K_M`.
        sha256: hexadecimal digits that a file at a URL must have.
    """

    id: str
    version: str | None = None
    file: str | None = None
    quant: str | None = None
    sha256: str | None = None


def find_offer(wish: Wish) -> Offer:
    """Ask the source that `wish` means what it has.

    Raises:
        BadInputError: not an ID, or an option that this source does not take.
        ModelcError: there is no such model, or it cannot be had.
    """
    kind, colon, rest = wish.id.partition(":")
    if colon and kind in ("pypi", "ollama"):
        _refuse(wish, "--sha256", wish.sha256)
    if kind == "pypi" and colon:
        config = pip_config()
        with Client(config.certificates) as client:
            return packages.offer(client, config.indexes, rest, wish.version)
    if kind == "ollama" and colon:
        _refuse(wish, "--file", wish.file)
        _refuse(wish, "--quant", wish.quant)
        with Client() as client:
            return ollama.offer(client, rest, wish.version)
    repository, version, file, quant = _hub_parts(wish)
    with Client() as client:
        if repository is not None:
            _refuse(wish, "--sha256", wish.sha256)
            return huggingface.offer(client, repository, version, file, quant)
        if wish.id.lower().startswith(("http://", "https://")):
            for option, value in (("--version", wish.version), ("--file", wish.file), ("--quant", wish.quant)):
                _refuse(wish, option, value)
            return web.offer(client, wish.id, wish.sha256)
    raise BadInputError("not a model's ID", got=repr(wish.id), expected=EXPECTED)


def _hub_parts(wish: Wish) -> tuple[str | None, str | None, str | None, str | None]:
    """Repository, revision, file and quantization on the hub; no repository where the ID means something else."""
    short = wish.id
    for prefix in (f"{huggingface.endpoint()}/", f"{huggingface.ENDPOINT}/", *SHORT_HUB):
        if wish.id.lower().startswith(prefix):
            short = wish.id[len(prefix) :]
            page = HUB_PAGE.fullmatch(short)
            if page is not None:
                file = unquote(page["file"]) if page["file"] else None
                return page["repository"], wish.version or page["revision"], wish.file or file, wish.quant
    found = REPOSITORY.fullmatch(short)
    if found is None or ".." in short:
        return None, None, None, None
    return found["repository"], wish.version, wish.file, wish.quant or found["quant"]


def _refuse(wish: Wish, option: str, value: str | None) -> None:
    if value is not None:
        raise BadInputError("this source does not take the option", param=option, got=wish.id, hint="leave it out")
