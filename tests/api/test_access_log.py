import io
import json
import threading
from typing import Any

import pytest

from modelc.api.access_log import MAX_WAITING, Access, AccessLog

LINE = Access("2026-01-02T03:04:05.678Z", "abc", "192.0.2.1", "GET", "/health", 200, 17, 1.25, True, "curl/8")


def written(form: str, *lines: Access) -> list[str]:
    stream = io.StringIO()
    log = AccessLog(form, stream)
    for line in lines:
        log.note(line)
    log.close()
    return stream.getvalue().splitlines()


def test_a_request_is_one_line() -> None:
    (line,) = written("json", LINE)
    assert json.loads(line) == {
        "time": "2026-01-02T03:04:05.678Z",
        "id": "abc",
        "client": "192.0.2.1",
        "method": "GET",
        "path": "/health",
        "status": 200,
        "bytes": 17,
        "duration_ms": 1.25,
        "complete": True,
        "agent": "curl/8",
    }
    assert written("text", LINE) == ['2026-01-02T03:04:05.678Z 192.0.2.1 "GET /health" 200 17 B 1.2 ms abc "curl/8"']


@pytest.mark.parametrize("form", ["json", "text"])
def test_what_clients_choose_cannot_break_a_line(form: str) -> None:
    hostile = Access("t", "i", "c", "GET", '/a\n"b\x1b[31m\u2028é', 200, 0, 0.0, False, 'x"\r\ny')
    lines = written(form, hostile, LINE)
    assert len(lines) == 2
    assert "\x1b" not in lines[0]


def test_a_reader_that_stops_delays_nobody_and_what_is_dropped_is_counted() -> None:
    class Stuck(io.StringIO):
        go = threading.Event()

        def write(self, text: str) -> int:
            assert self.go.wait(10)
            return super().write(text)

    stream = Stuck()
    log = AccessLog("text", stream)
    for _ in range(MAX_WAITING + 10):
        log.note(LINE)
    stream.go.set()
    log.close()
    lines = stream.getvalue().splitlines()
    assert MAX_WAITING <= len(lines) < MAX_WAITING + 10
    assert any("lines were dropped" in line for line in lines)


def test_every_answer_has_its_line_and_its_identifier(
    client_of: Any, model: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    client = client_of(model, access_log="json", api_keys=("secret",))
    answers = [
        client.get("/health", headers={"x-request-id": "mine-1", "user-agent": "tests"}),
        client.get("/v1/models"),
        client.get("/nowhere"),
        client.post("/chat", content=b"{", headers={"x-api-key": "secret"}),
    ]
    client.app.state.server.access_log.close()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["path"], line["status"]) for line in lines] == [
        ("/health", 200),
        ("/v1/models", 401),
        ("/nowhere", 404),
        ("/chat", 400),
    ]
    assert [line["id"] for line in lines] == [answer.headers["x-request-id"] for answer in answers]
    assert [line["bytes"] for line in lines] == [len(answer.content) for answer in answers]
    assert (lines[0]["id"], lines[0]["agent"], lines[0]["complete"]) == ("mine-1", "tests", True)


@pytest.mark.parametrize("sent", ["", "a b", "a" * 129, "a\tb", "é", '"', "a,b"])
def test_an_identifier_that_is_none_is_replaced(client_of: Any, model: Any, sent: str) -> None:
    answer = client_of(model).get("/health", headers={"x-request-id": sent.encode()})
    assert answer.headers["x-request-id"] != sent
    assert len(answer.headers["x-request-id"]) == 32
