import http.server
import json
import shlex
import threading
from collections.abc import Iterator
from typing import ClassVar

import pytest

from tools.demo import DemoError, ask, curl_example, free_port, messages

QUESTION = 'What\'s "up"? $HOME `x`'


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers as the server does, with what the test has put into `lines`."""

    lines: ClassVar[list[str]] = []
    status = 200
    asked: ClassVar[dict[str, object]] = {}

    def do_POST(self) -> None:
        Answers.asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write("".join(f"{line}\n\n" for line in self.lines).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    server = http.server.HTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def chunk(**delta: str) -> str:
    return "data: " + json.dumps({"choices": [{"delta": delta}]})


def test_the_answer_comes_in_the_pieces_of_the_stream(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [chunk(role="assistant"), chunk(content="Par"), chunk(content="is é"), chunk(), "data: [DONE]"]
    monkeypatch.setattr(Answers, "lines", lines)
    assert "".join(ask(port, QUESTION)) == "Paris é"
    assert Answers.asked == {"messages": messages(QUESTION), "stream": True}


@pytest.mark.parametrize(("lines", "status"), [([chunk(), "data: [DONE]"], 200), (["no model"], 503)])
def test_an_empty_answer_or_an_error_ends_the_demo(
    port: int, monkeypatch: pytest.MonkeyPatch, lines: list[str], status: int
) -> None:
    monkeypatch.setattr(Answers, "lines", lines)
    monkeypatch.setattr(Answers, "status", status)
    with pytest.raises(DemoError, match=r"empty|503: no model"):
        list(ask(port, QUESTION))


def test_the_curl_example_is_quoted_for_the_shell() -> None:
    words = shlex.split(curl_example(8080, QUESTION))
    assert words[0] == "curl"
    assert json.loads(words[-1]) == {"messages": messages(QUESTION)}


def test_a_port_in_use_is_not_chosen(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.demo.USUAL_PORT", port)
    assert free_port() != port
