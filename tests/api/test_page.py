"""The chat page."""

import re

from litestar import Litestar
from litestar.testing import TestClient


def test_the_page_loads_nothing_from_elsewhere(client: TestClient[Litestar]) -> None:
    response = client.get("/")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert not re.search(r"(https?:)?//[a-z]", response.text)
    assert re.findall(r'(?:src|href)="([^"]*)"', response.text) == ["data:,"]
    policy = response.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "connect-src 'self'" in policy


def test_the_page_asks_below_its_own_address_so_that_a_proxy_may_prefix_it(client: TestClient[Litestar]) -> None:
    fetched = re.findall(r'fetch\("([^"]*)"', client.get("/").text)
    assert fetched == ["v1/chat/completions", "health"]


def test_the_page_never_takes_text_for_markup(client: TestClient[Litestar]) -> None:
    assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|eval\(", client.get("/").text)


def test_head_is_answered(client: TestClient[Litestar]) -> None:
    response = client.head("/")
    assert (response.status_code, response.content) == (200, b"")
