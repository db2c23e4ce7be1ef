"""Requests to other machines: repeated when that may help, and every failure turned into one line.

Proxies (`HTTPS_PROXY`, `NO_PROXY`, …) and `SSL_CERT_FILE` count as usual; certificates of the system are trusted
beside those that come with httpx.
"""

from __future__ import annotations

import contextlib
import email.utils
import random
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from modelc.errors import BadInputError, BusyError, ModelcError, NetworkError, NotFoundError
from modelc.version import __version__

BACK_OFF_S = 0.5  # before the second try; doubled for each one after it
LONGEST_BACK_OFF_S = 30.0
LONGEST_WAIT_S = 120.0  # that a server may ask for; a longer one is left to the user
TRIES = 5
TIMEOUTS = httpx.Timeout(connect=15.0, read=30.0, write=30.0, pool=None)
TRY_AGAIN = {408, 425, 429, 500, 502, 503, 504}
MAX_JSON_BYTES = 64 << 20
MAX_REDIRECTS = 10
TOKEN_HINT = "if an account is needed, set HF_TOKEN to a token of it"
# What the Hugging Face hub says in `X-Error-Code`.
REFUSALS: dict[str, tuple[type[ModelcError], str, str]] = {
    "GatedRepo": (
        NetworkError,
        "access to this model must be granted first",
        "ask for it on the model's page, then set HF_TOKEN to a token of your account",
    ),
    "RepoNotFound": (NotFoundError, "no such model, or it is private", f"check the name; {TOKEN_HINT}"),
    "RevisionNotFound": (NotFoundError, "no such branch, tag or commit", "leave --version out for the newest"),
    "EntryNotFound": (NotFoundError, "no such file", "try again: the model may have changed"),
    "DisabledRepo": (NetworkError, "the model was disabled by its owner or the hub", "choose another one"),
}


class Client:
    """HTTP with retries; safe for several threads. Close it, or use it as a context manager.

    Args:
        certificates: a file of certificates to trust beside the usual ones.
    """

    def __init__(self, certificates: Path | None = None) -> None:
        try:
            trusted = httpx.create_ssl_context()
            trusted.load_default_certs()
            if certificates is not None:
                trusted.load_verify_locations(certificates)
            self._http = httpx.Client(
                verify=trusted,
                timeout=TIMEOUTS,
                follow_redirects=True,
                max_redirects=MAX_REDIRECTS,
                headers={"User-Agent": f"modelc/{__version__}", "Accept-Encoding": "identity"},
                event_hooks={"response": [_refuse_downgrade]},
            )
        except (OSError, ValueError) as error:  # a certificate file or a proxy variable that cannot be used
            raise BadInputError("the network settings cannot be used", got=error) from None
        self.stopped = threading.Event()  # set: waiting for the next try ends

    def __enter__(self) -> Client:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all connections."""
        self.stopped.set()
        self._http.close()

    def get_json(self, url: str, headers: Mapping[str, str] | None = None) -> tuple[Any, httpx.Headers]:
        """Return the JSON at `url`, and the headers it came with.

        Raises:
            ModelcError: it cannot be had, or is no JSON.
        """
        text, answer = self.get_text(url, headers)
        import json

        try:
            return json.loads(text), answer
        except (ValueError, RecursionError):
            raise NetworkError("the server's answer is not JSON", path=url, got=text[:60] or "nothing") from None

    def get_text(self, url: str, headers: Mapping[str, str] | None = None) -> tuple[str, httpx.Headers]:
        """Return the text at `url`, and the headers it came with.

        Raises:
            ModelcError: it cannot be had, or is too long.
        """
        attempts = Attempts(self.stopped)
        while True:
            try:
                with self.open(url, headers) as response:
                    content = bytearray()
                    for piece in response.iter_bytes():
                        content += piece
                        if len(content) > MAX_JSON_BYTES:
                            raise NetworkError("the answer is too long", path=url, expected=f"{MAX_JSON_BYTES} bytes")
                    return content.decode("utf-8", "replace"), response.headers
            except (httpx.TransportError, StatusError) as error:
                attempts.failed(error, url)

    @contextlib.contextmanager
    def open(self, url: str, headers: Mapping[str, str] | None = None) -> Iterator[httpx.Response]:
        """One request, whose body is not read yet.

        Raises:
            StatusError: the server answered with an error.
            httpx.TransportError: the connection failed.
            BadInputError: `url` is none.
        """
        try:
            with self._http.stream("GET", url, headers=dict(headers or {})) as response:
                if response.status_code >= 400:
                    raise StatusError(response)
                yield response
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, UnicodeError) as error:  # the last for host names
            raise BadInputError("not a URL", got=url, hint=str(error)) from None
        except httpx.TooManyRedirects:
            raise NetworkError("the server redirects in circles", path=url) from None
        except httpx.DecodingError as error:
            raise NetworkError("the server's answer cannot be decoded", path=url, got=error) from None


class StatusError(Exception):
    """The server answered with status 400 or higher.

    Attributes:
        status: the status.
        headers: of the answer.
        detail: the beginning of what it said.
    """

    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        self.headers = response.headers
        self.url = str(response.url)
        try:
            self.detail = " ".join(response.read()[:2000].decode("utf-8", "replace").split())[:200]
        except httpx.HTTPError:
            self.detail = ""
        super().__init__(f"status {self.status}")


class Attempts:
    """Counts tries, and waits between them."""

    def __init__(self, stopped: threading.Event) -> None:
        self._stopped = stopped
        self._failed = 0

    def succeeded(self) -> None:
        """Something came: start counting anew."""
        self._failed = 0

    def failed(self, error: httpx.TransportError | StatusError, url: str) -> None:
        """Wait before the next try.

        Raises:
            ModelcError: no other try would help, or there were enough.
        """
        self._failed += 1
        wait_s = min(BACK_OFF_S * 2 ** (self._failed - 1), LONGEST_BACK_OFF_S) * random.uniform(0.7, 1.0)
        if isinstance(error, StatusError):
            asked_s = _retry_after_s(error.headers)
            if error.status not in TRY_AGAIN or asked_s > LONGEST_WAIT_S or self._failed >= TRIES:
                raise explain_status(error, url) from None
            wait_s = max(wait_s, asked_s)
        elif self._failed >= TRIES or (isinstance(error, httpx.ConnectError) and self._failed >= TRIES - 2):
            raise _unreachable(error, url) from None
        if self._stopped.wait(wait_s):
            raise NetworkError("stopped", path=url)


def explain_status(error: StatusError, url: str) -> ModelcError:
    """The error for the user of a server's error."""
    said = f"status {error.status}{f': {error.detail}' if error.detail else ''}"
    if error.status == 429:
        wait_s = _retry_after_s(error.headers)
        hint = f"try again in {wait_s:.0f} s" if wait_s else "try again later"
        return BusyError("the server asks for fewer requests", path=url, got=said, hint=hint)
    if refusal := REFUSALS.get(error.headers.get("x-error-code", "")):
        return refusal[0](refusal[1], path=url, hint=refusal[2])
    if error.status in (404, 410):
        return NotFoundError("the server has no such file", path=url, got=f"status {error.status}")
    if error.status in (401, 403):
        return NetworkError("the server refuses access", path=url, got=said, hint=TOKEN_HINT)
    later = "try again later" if error.status >= 500 else None
    return NetworkError("the server refuses", path=url, got=said, hint=later)


def _unreachable(error: httpx.TransportError, url: str) -> NetworkError:
    host = urlsplit(url).hostname or url
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
        hint = "check the network, and the proxy variables where there is one"
        return NetworkError(f"{host} cannot be reached", got=str(error) or type(error).__name__, hint=hint)
    hint = "run the command again: what has come is kept"
    return NetworkError(f"the connection to {host} breaks", got=str(error) or type(error).__name__, hint=hint)


def _retry_after_s(headers: httpx.Headers) -> float:
    """Seconds that the server asks to wait; 0 where it does not."""
    text = headers.get("retry-after", "").strip()
    if text.isdecimal():
        return float(text[:9])
    with contextlib.suppress(TypeError, ValueError):
        return max(email.utils.parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
    return 0.0


def _refuse_downgrade(response: httpx.Response) -> None:
    """An encrypted request is never redirected to one that everybody can read."""
    target = response.headers.get("location", "")
    if response.has_redirect_location and response.url.scheme == "https" and target.lower().startswith("http:"):
        raise NetworkError("the server redirects to an unencrypted address", path=str(response.url), got=target)
