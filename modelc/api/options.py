"""What the person who starts the server decides."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Address, limits and defaults of one server."""

    bind: str = "127.0.0.1"  # address or host name to listen on; IPv6 with or without brackets
    port: int = 8080  # TCP port; 0 takes a free one
    api_key: str | None = None  # what clients must send; None asks for none
    rate_limit: int | None = None  # requests per minute and client address; None: no limit
    max_concurrent: int | None = None  # requests answered at once; None: no limit
    max_body_bytes: int = 16 * MIB  # a larger request body is refused before it is read
    body_timeout_s: float = 30.0  # a request body that stops coming for so long is given up
    cors_origins: tuple[str, ...] = ("*",)  # origins whose pages may call the server; () for none
    defaults: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))  # `Sampling` fields by name
