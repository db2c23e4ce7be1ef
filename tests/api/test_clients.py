import pytest

from modelc.api.clients import Clients, bucket_of, parse_networks
from modelc.errors import BadInputError


def address(peer: str, *headers: tuple[str, str], proxies: tuple[str, ...] = ("10.0.0.0/8", "::1")) -> str:
    encoded = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    return Clients(parse_networks(proxies)).address_of({"client": (peer, 1234), "headers": encoded})


@pytest.mark.parametrize(
    ("peer", "headers", "expected"),
    [
        ("192.0.2.1", (), "192.0.2.1"),
        ("192.0.2.1", (("x-forwarded-for", "198.51.100.7"),), "192.0.2.1"),  # no trusted proxy: may say anything
        ("10.0.0.1", (("x-forwarded-for", "198.51.100.7"),), "198.51.100.7"),
        ("10.0.0.1", (("x-forwarded-for", "203.0.113.9, 198.51.100.7"),), "198.51.100.7"),  # the first may be a lie
        ("10.0.0.1", (("x-forwarded-for", "203.0.113.9, 198.51.100.7, 10.1.1.1"),), "198.51.100.7"),
        ("10.0.0.1", (("x-forwarded-for", "203.0.113.9"), ("x-forwarded-for", "198.51.100.7")), "198.51.100.7"),
        ("10.0.0.1", (("x-forwarded-for", "10.1.1.1, 10.2.2.2"),), "10.1.1.1"),
        ("10.0.0.1", (("x-forwarded-for", "198.51.100.7:4711"),), "198.51.100.7"),
        ("10.0.0.1", (("x-forwarded-for", "unknown"),), "10.0.0.1"),
        ("10.0.0.1", (("x-forwarded-for", "198.51.100.7, nonsense\\x00, 10.1.1.1"),), "10.1.1.1"),
        ("10.0.0.1", (("x-forwarded-for", ""),), "10.0.0.1"),
        ("10.0.0.1", (("x-forwarded-for", "9" * 5000),), "10.0.0.1"),
        ("::1", (("x-forwarded-for", "[2001:db8::7]:80"),), "2001:db8::7"),
        ("::ffff:10.0.0.1", (("x-forwarded-for", "2001:db8::7"),), "2001:db8::7"),
        ("10.0.0.1", (("forwarded", "for=192.0.2.43, for=198.51.100.17;proto=http;by=10.0.0.1"),), "198.51.100.17"),
        ("10.0.0.1", (("forwarded", 'proto=https; For="[2001:db8:cafe::17]:4711"'),), "2001:db8:cafe::17"),
        ("10.0.0.1", (("forwarded", "for=_hidden"),), "10.0.0.1"),
        ("10.0.0.1", (("forwarded", "for=192.0.2.1"), ("x-forwarded-for", "198.51.100.7")), "198.51.100.7"),
    ],
)
def test_a_client_s_address_is_what_trusted_proxies_say(
    peer: str, headers: tuple[tuple[str, str], ...], expected: str
) -> None:
    assert address(peer, *headers) == expected


def test_without_trusted_proxies_it_is_the_connection_s() -> None:
    assert address("10.0.0.1", ("x-forwarded-for", "1.2.3.4"), proxies=()) == "10.0.0.1"
    assert Clients().address_of({"client": None, "headers": []}) == ""


def test_a_network_of_ipv6_addresses_counts_as_one_client() -> None:
    assert bucket_of("2001:db8:1:2:3:4:5:6") == bucket_of("2001:db8:1:2::9") != bucket_of("2001:db8:1:3::9")
    assert bucket_of("192.0.2.1") == bucket_of("::ffff:192.0.2.1") != bucket_of("192.0.2.2")
    assert bucket_of("") == ""


@pytest.mark.parametrize("text", ["", "proxy.example", "10.0.0.0/33", "10.0.0.256", "*"])
def test_what_is_no_network_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="not a proxy"):
        parse_networks([text])
