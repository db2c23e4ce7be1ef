"""Who a request comes from: the connection's other end, or what trusted proxies say; and whom limits count together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, TypeAlias

from modelc.errors import BadInputError

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

BUCKET_BITS = 64  # of IPv6 addresses: whoever has one has all that begin so
# `192.0.2.1`, `192.0.2.1:443`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:443`
_HOST = re.compile(r"(?:(?P<v4>[\d.]+)|\[(?P<v6>[^\]]+)\])(?::\d+)?")
_FORWARDED_FOR = re.compile(r'\s*for\s*=\s*(?:"(?P<quoted>[^"]*)"|(?P<bare>[^\s;"]*))\s*', re.IGNORECASE)


def parse_networks(given: Iterable[str]) -> tuple[Network, ...]:
    """Return the networks of `--trusted-proxy`: addresses, or networks like `10.0.0.0/8`.

    Raises:
        BadInputError: Neither of both.
    """
    networks = []
    for text in given:
        try:
            networks.append(ip_network(text.strip("[]"), strict=False))
        except ValueError:
            expected = "an address, or a network like 10.0.0.0/8"
            raise BadInputError("not a proxy", param="--trusted-proxy", got=repr(text), expected=expected) from None
    return tuple(networks)


class Clients:
    """Finds the client's address.

    Each proxy adds the address that it was called from, at the end. From there on addresses are believed as far as
    those behind them are trusted proxies. `X-Forwarded-For` counts where it is sent, else `Forwarded` (RFC 7239).

    Args:
        proxies: Networks of trusted proxies.
    """

    def __init__(self, proxies: Iterable[Network] = ()) -> None:
        self._proxies = tuple(proxies)

    def address_of(self, scope: Mapping[str, Any]) -> str:
        """Return the address of the client of an ASGI connection; empty where there is none (a Unix socket)."""
        client = scope.get("client")
        peer = str(client[0]) if client else ""
        address = _parsed(peer)
        if address is None or not self._trusts(address):
            return peer
        for hop in reversed([*_hops(scope["headers"])]):
            before = _parsed(hop)
            if before is None:
                break
            address = before
            if not self._trusts(address):
                break
        return str(address)

    def _trusts(self, address: Address) -> bool:
        return any(address in network for network in self._proxies)


def bucket_of(address: str) -> str:
    """Whom a limit counts together with `address`: itself, or its /64 where it is an IPv6 address."""
    parsed = _parsed(address)
    if not isinstance(parsed, IPv6Address):
        return address if parsed is None else str(parsed)
    return str(ip_network((int(parsed), BUCKET_BITS), strict=False).network_address) + f"/{BUCKET_BITS}"


def _parsed(text: str) -> Address | None:
    match = _HOST.fullmatch(text)
    try:
        address = ip_address((match["v4"] or match["v6"]) if match else text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _hops(headers: Iterable[tuple[bytes, bytes]]) -> Iterator[str]:
    named: dict[bytes, list[str]] = {}
    for name, value in headers:
        if name in (b"x-forwarded-for", b"forwarded"):
            named.setdefault(name, []).append(value.decode("latin-1"))
    if b"x-forwarded-for" in named:
        for hop in ",".join(named[b"x-forwarded-for"]).split(","):
            yield hop.strip()
    else:
        for element in ",".join(named.get(b"forwarded", ())).split(","):
            found = [match for part in element.split(";") if (match := _FORWARDED_FOR.fullmatch(part))]
            yield (found[0]["quoted"] or found[0]["bare"] or "") if found else ""
