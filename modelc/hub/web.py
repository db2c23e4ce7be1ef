"""A model file at an `http(s)://` address."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from modelc.errors import BadInputError
from modelc.hub.client import Client
from modelc.hub.remote import Offer, RemoteFile, without_credentials
from modelc.hub.transfer import probe

SHA256 = re.compile(r"[0-9a-fA-F]{64}")


def offer(client: Client, url: str, sha256: str | None) -> Offer:
    """What is at `url`.

    Args:
        client: for the requests.
        url: the address of a file.
        sha256: hexadecimal digits that the file must have, None for any.

    Raises:
        BadInputError: the address names no file, or `sha256` is none.
        ModelcError: it cannot be had.
    """
    if sha256 is not None and not SHA256.fullmatch(sha256):
        raise BadInputError("not a SHA-256", param="--sha256", got=repr(sha256), expected="64 hexadecimal digits")
    url, headers = without_credentials(url)
    name = PurePosixPath(unquote(urlsplit(url).path)).name
    if not name:
        raise BadInputError("the address names no file", got=url)
    digest = None if sha256 is None else f"sha256:{sha256.lower()}"
    file = probe(client, RemoteFile(re.sub(r"[\\:\0/]", "_", name), url, digest=digest, headers=headers))
    return Offer(PurePosixPath(file.name).stem, (file,), file.name, url)
