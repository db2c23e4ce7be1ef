"""In the place of `ssl` in an executable: a compiled file listens without TLS, and carries no OpenSSL (5 MB) for it.

Packages that could use TLS want these names when they are imported; whoever calls one is told.
"""

from __future__ import annotations

from typing import Any, NoReturn

CERT_NONE = 0
CERT_REQUIRED = 2
PROTOCOL_TLS_CLIENT = 16
PROTOCOL_TLS_SERVER = 17


class SSLError(OSError):
    """As in `ssl`; never raised."""


class SSLEOFError(SSLError):
    """As in `ssl`; never raised."""


class SSLSyscallError(SSLError):
    """As in `ssl`; never raised."""


class SSLWantReadError(SSLError):
    """As in `ssl`; never raised."""


class SSLWantWriteError(SSLError):
    """As in `ssl`; never raised."""


class TLSVersion:
    """As in `ssl`; there are none."""


class SSLContext:
    """As in `ssl`; there are none."""

    def __init__(self, *args: Any, **named: Any) -> None:
        create_default_context()


class SSLObject(SSLContext):
    """As in `ssl`; there are none."""


class SSLSocket(SSLContext):
    """As in `ssl`; there are none."""


def create_default_context(*args: Any, **named: Any) -> NoReturn:
    """There is no TLS.

    Raises:
        OSError: always.
    """
    raise OSError("a compiled file has no TLS")
