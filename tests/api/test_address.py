"""Listening: what addresses look like, and what is said of those that do not work."""

import socket

import pytest

from modelc.api.address import bind_listener, parse_listen, url_of
from modelc.errors import BadInputError, ModelcError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8080", ("127.0.0.1", 8080)),
        ("localhost:0", ("localhost", 0)),
        ("[::1]:8080", ("::1", 8080)),
        ("[::]:65535", ("::", 65535)),
        ("[fe80::1%eth0]:80", ("fe80::1%eth0", 80)),
    ],
)
def test_addresses_are_split(text: str, address: tuple[str, int]) -> None:
    assert parse_listen(text) == address


@pytest.mark.parametrize(
    "text",
    ["", "8080", ":8080", "[]:80", "127.0.0.1", "127.0.0.1:", "a:b", "a:65536", "a:-1", "::1:80", "a:8²", "a: 80"],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(BadInputError) as caught:
        parse_listen(text)
    assert caught.value.param == "listen"


def test_connections_have_the_protocol_with_which_asyncio_sends_at_once() -> None:
    with bind_listener("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()[:2]):
        connection, _ = listener.accept()
        with connection:
            assert connection.proto == socket.IPPROTO_TCP


def test_a_listener_has_a_url() -> None:
    with bind_listener("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert url_of(listener) == f"http://127.0.0.1:{port}"


def test_names_mean_ipv4_where_they_have_both() -> None:
    with bind_listener("localhost", 0) as listener:
        assert listener.family == socket.AF_INET


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_ipv6_addresses_are_listened_on(host: str) -> None:
    try:
        listener = bind_listener(host, 0)
    except ModelcError:
        pytest.skip("no IPv6 loopback here")
    with listener:
        assert url_of(listener).startswith("http://[::1]:")
        with socket.create_connection(listener.getsockname()[:2], timeout=5):
            pass


def test_a_port_in_use_is_said_in_one_line() -> None:
    with bind_listener("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(ModelcError) as caught:
            bind_listener("127.0.0.1", port)
    assert str(caught.value) == f"port {port} on 127.0.0.1 is in use; choose another with --port"


@pytest.mark.parametrize("host", ["203.0.113.1", "999.1.1.1", "no such host", "a" * 300])
def test_an_address_of_no_interface_is_refused(host: str) -> None:
    with pytest.raises(BadInputError) as caught:
        bind_listener(host, 0)
    assert caught.value.param == "bind"
