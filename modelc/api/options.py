"""What the person who starts the server decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from modelc.api.address import is_loopback

if TYPE_CHECKING:
    from modelc.api.clients import Network

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Address, limits and defaults of one server."""

    bind: str = "127.0.0.1"  # address or host name to listen on; IPv6 with or without brackets
    port: int = 8080  # TCP port; 0 takes a free one
    api_keys: tuple[str, ...] = ()  # clients must send one of them; () asks for none
    rate_limit: int | None = None  # requests per minute and client address; None: no limit
    trusted_proxies: tuple[Network, ...] = ()  # whose word on a client's address is taken
    max_concurrent: int | None = None  # requests answered at once; None: no limit
    max_body_bytes: int = 16 * MIB  # a larger request body is refused before it is read
    body_memory_bytes: int = 256 * MIB  # all bodies together; a request that comes while they fill it is refused
    body_timeout_s: float = 30.0  # a request's head, or the next part of its body, must come within this time
    cors_origins: tuple[str, ...] = ("*",)  # origins whose pages may call the server; () for none
    lenient_grammar: bool = False  # a grammar or schema that cannot be followed is ignored
    adapters: Path | None = None  # requests may load LoRA adapters below it alone; None: see `is_local`
    access_log: str | None = None  # form of the line that is written for each request, see `access_log.FORMS`
    defaults: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))  # `Sampling` fields by name

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches the server."""
        return is_loopback(self.bind)
