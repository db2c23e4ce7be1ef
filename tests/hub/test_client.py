import email.utils
import threading
import time
from collections import deque
from pathlib import Path

import httpx
import pytest

from modelc.errors import BadInputError, BusyError, NetworkError
from modelc.hub import client as module
from modelc.hub.client import Attempts, Client, StatusError, _refuse_downgrade
from modelc.hub.remote import without_credentials
from tests.hub.fake_server import FakeServer, Page


def status(code: int, **headers: str) -> StatusError:
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return StatusError(httpx.Response(code, headers=named, request=httpx.Request("GET", "http://host/x")))


class Clock(threading.Event):
    """Notes how long each pause was."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(timeout or 0.0)
        return False


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_pauses_grow_until_it_is_enough(clock: Clock) -> None:
    attempts = Attempts(clock)
    with pytest.raises(NetworkError, match="the connection to host breaks: got cut"):
        for _ in range(99):
            attempts.failed(httpx.ReadError("cut"), "http://host/x")
    assert len(clock.waits) == module.TRIES - 1
    assert all(0.7 * 0.5 * 2**i <= wait <= 0.5 * 2**i for i, wait in enumerate(clock.waits))


def test_success_begins_the_count_anew(clock: Clock) -> None:
    attempts = Attempts(clock)
    for _ in range(20):
        attempts.failed(httpx.ReadError("cut"), "http://host/x")
        attempts.succeeded()
    assert max(clock.waits) <= 0.5


@pytest.mark.parametrize("form", ["7", "date"])
def test_a_pause_that_the_server_asks_for_is_kept(clock: Clock, form: str) -> None:
    text = email.utils.formatdate(time.time() + 8, usegmt=True) if form == "date" else form
    Attempts(clock).failed(status(503, retry_after=text), "http://host/x")
    assert 6 <= clock.waits[0] <= 8


def test_a_pause_that_is_too_long_is_left_to_the_user(clock: Clock) -> None:
    with pytest.raises(BusyError, match="try again in 600 s"):
        Attempts(clock).failed(status(429, retry_after="600"), "http://host/x")
    assert clock.waits == []


def test_json_is_asked_for_again_when_the_connection_breaks(server: FakeServer) -> None:
    page = server.put("/a", {"x": 1}, faults=deque([Page(b"", 503), Page(b"[1, 2", cut_after=3)]))
    with Client() as client:
        found, headers = client.get_json(f"{server.url}/a")
    assert (found, headers["etag"]) == ({"x": 1}, page.etag)


def test_an_answer_without_end_is_given_up(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_JSON_BYTES", 1000)
    server.put("/a", b" " * 2000)
    with Client() as client, pytest.raises(NetworkError, match="the answer is too long"):
        client.get_json(f"{server.url}/a")


def test_an_encrypted_request_is_not_redirected_to_an_open_one() -> None:
    request = httpx.Request("GET", "https://host/x")
    _refuse_downgrade(httpx.Response(302, headers={"Location": "https://other/x"}, request=request))
    with pytest.raises(NetworkError, match="unencrypted address"):
        _refuse_downgrade(httpx.Response(302, headers={"Location": "HTTP://other/x"}, request=request))


def test_certificates_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    (tmp_path / "x.pem").write_text("no certificate")
    for path in (tmp_path / "x.pem", tmp_path / "missing.pem"):
        with pytest.raises(BadInputError, match="the network settings cannot be used"):
            Client(path)


def test_a_proxy_that_makes_no_sense_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "ftp://proxy")
    with pytest.raises(BadInputError, match="the network settings cannot be used"):
        Client()


@pytest.mark.parametrize(
    ("url", "address", "header"),
    [
        ("http://host:1/x?y#z", "http://host:1/x?y#z", None),
        ("http://me:p%40ss@host:1/x", "http://host:1/x", "Basic bWU6cEBzcw=="),
        ("http://token@[::1]:1/x", "http://[::1]:1/x", "Basic dG9rZW46"),
    ],
)
def test_credentials_become_headers(url: str, address: str, header: str | None) -> None:
    assert without_credentials(url) == (address, {} if header is None else {"Authorization": header})
