"""API keys: from the command line, the environment or a file, and compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from pathlib import Path

from modelc.errors import BadInputError, NotFoundError

KEY_HEADERS = frozenset({b"authorization", b"x-api-key"})
MAX_FILE_BYTES = 1 << 20


def read_keys(given: Sequence[str]) -> tuple[str, ...]:
    """Return the keys that clients may send, without those given twice.

    Args:
        given: Keys, or `@FILE`: a file with a key in each line; empty lines and those that begin with `#` are none.

    Raises:
        BadInputError: A key is empty, or no header could carry it, or a file has no key.
        NotFoundError: There is no such file.
    """
    keys: list[str] = []
    for each in given:
        keys += _keys_in(Path(each[1:])) if each.startswith("@") else [each]
    for key in keys:
        if not key:
            raise BadInputError("the API key is empty", param="--api-key", hint="leave it out to ask clients for none")
        if key != key.strip() or not key.isprintable():
            raise BadInputError("not an API key", param="--api-key", expected="a line without spaces around it")
    return tuple(dict.fromkeys(keys))


def _keys_in(path: Path) -> list[str]:
    try:
        if not path.is_file():
            raise NotFoundError("no such file of API keys", path=path)
        with path.open("rb") as file:
            text = file.read(MAX_FILE_BYTES + 1).decode("utf-8")
    except (OSError, ValueError) as error:
        raise BadInputError("API keys cannot be read", param="--api-key", path=path, got=error) from None
    keys = [line.strip() for line in text.splitlines()]
    keys = [key for key in keys if key and not key.startswith("#")]
    if not keys or len(text) > MAX_FILE_BYTES:
        raise BadInputError("no API keys", param="--api-key", path=path, expected="a key in each line, up to 1 MiB")
    return keys


class KeyRing:
    """Knows the keys by their hashes, so that comparing tells nothing, not even lengths.

    Args:
        keys: What clients may send.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self._digests = [_digest(key.encode()) for key in keys]

    def opens(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Whether a request with these headers has a key: `Authorization: Bearer KEY`, or `x-api-key: KEY`."""
        sent = [_key_in(name, value) for name, value in headers if name in KEY_HEADERS]
        matches = [hmac.compare_digest(_digest(key), known) for key in sent for known in self._digests]
        return any(matches)


def _key_in(name: bytes, value: bytes) -> bytes:
    scheme, _, token = value.partition(b" ")
    return token.strip() if name == b"authorization" and scheme.lower() == b"bearer" else value.strip()


def _digest(key: bytes) -> bytes:
    return hashlib.blake2b(key, digest_size=32).digest()
