"""Where the server listens: parsing, binding and printing of IPv4, IPv6 and host addresses."""

import errno
import ipaddress
import socket

from modelc.errors import BadInputError, ModelcError

BACKLOG = 1024  # connections the kernel keeps waiting while the server starts


def parse_listen(text: str) -> tuple[str, int]:
    """Split `ADDR:PORT` as in `127.0.0.1:8080`, `localhost:8080`, `[::1]:8080`.

    Raises:
        BadInputError: not of this form, or the port is not 0 to 65535.
    """
    host, colon, port = text.rpartition(":")
    in_brackets = host.startswith("[") and host.endswith("]")
    if not colon or not host.strip("[]") or (":" in host and not in_brackets):
        expected = "ADDR:PORT, an IPv6 address in brackets: [::1]:8080"
        raise BadInputError("not an address to listen on", param="listen", got=repr(text), expected=expected)
    if not (port.isascii() and port.isdecimal() and int(port) <= 65535):
        raise BadInputError("not a port", param="listen", got=repr(port), expected="0 to 65535")
    return host.strip("[]"), int(port)


def bind_listener(host: str, port: int) -> socket.socket:
    """Open a listening TCP socket; connections wait in its queue until the server accepts them.

    Args:
        host: IPv4 or IPv6 address, or a host name (IPv4 is preferred where a name has both).
        port: TCP port, 0 for a free one.

    Raises:
        BadInputError: the host does not resolve, or is not an address of this machine.
        ModelcError: the port is in use or not allowed.
    """
    host = host.strip("[]")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = min(found, key=lambda info: info[0] != socket.AF_INET)
        every_address = host == "::" and socket.has_dualstack_ipv6()
        listener = socket.create_server(address[:2], family=family, backlog=BACKLOG, dualstack_ipv6=every_address)
        # With the protocol named, asyncio sends at once (TCP_NODELAY); else each answer waits 40 ms for the client.
        return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=listener.detach())
    except (socket.gaierror, UnicodeError, OverflowError):
        raise BadInputError("not an address to listen on", param="bind", got=repr(host)) from None
    except OSError as error:
        raise _explained(error, host, port) from None


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens on `host`; False for names that may mean another address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def url_of(listener: socket.socket) -> str:
    """Return the URL of a bound socket, e.g. `http://[::1]:8080`."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _explained(error: OSError, host: str, port: int) -> ModelcError:
    match error.errno:
        case errno.EADDRINUSE:
            return ModelcError(f"port {port} on {host} is in use", hint="choose another with --port")
        case errno.EACCES:
            return ModelcError(f"no permission to listen on port {port}", hint="choose one above 1023 with --port")
        case errno.EADDRNOTAVAIL:
            return BadInputError("not an address of this machine", param="bind", got=repr(host))
        case _:
            return ModelcError(f"cannot listen on {host} port {port}", got=error.strerror or str(error))
