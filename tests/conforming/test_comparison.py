import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path

import pytest

from modelc.conforming import Served, compare, requests_for
from modelc.conforming.comparison import answers_of
from modelc.errors import BadInputError, ModelcError

Answerer = Callable[[str, bytes], tuple[int, str, bytes]]
REQUESTS = requests_for(3, 4)
numbers = count(1)


def echo(path: str, body: bytes) -> tuple[int, str, bytes]:
    """Answers with the request, and with what differs from answer to answer."""
    number = next(numbers)
    answer = f'{{"id":"chatcmpl-{number:032x}","created":{number},"echo":{json.dumps(path)},'.encode()
    return 200, "application/json", answer + b'"cached_tokens":%d,"body":%s}' % (0, body or b"null")


@pytest.fixture
def serve() -> Iterator[Callable[[Answerer], Served]]:
    """Starts servers in this process."""
    servers = []

    def start(answerer: Answerer) -> Served:
        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                status, kind, content = answerer(self.path, body)
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = answer

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return Served(f"http://127.0.0.1:{server.server_port}")

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_ids_and_times_may_differ(serve: Callable[[Answerer], Served]) -> None:
    report = compare(answers_of(serve(echo), REQUESTS), serve(echo), REQUESTS)
    assert report.differences == []
    assert report.requests == 2 * len(REQUESTS)
    assert report.statuses == {200: len(REQUESTS)}


def other_body(path: str, body: bytes) -> tuple[int, str, bytes]:
    status, kind, content = echo(path, body)
    return status, kind, content.replace(b'"body"', b'"bodY"') if path == "/chat" else content


def other_status(path: str, body: bytes) -> tuple[int, str, bytes]:
    _, kind, content = echo(path, body)
    return 201 if path == "/chat" else 200, kind, content


def other_type(path: str, body: bytes) -> tuple[int, str, bytes]:
    status, kind, content = echo(path, body)
    return status, "text/plain" if path == "/chat" else kind, content


def shorter(path: str, body: bytes) -> tuple[int, str, bytes]:
    status, kind, content = echo(path, body)
    return status, kind, content[:-1] if path == "/chat" else content


@pytest.mark.parametrize("changed", [other_body, other_status, other_type, shorter])
def test_every_other_byte_is_compared_in_both_passes(serve: Callable[[Answerer], Served], changed: Answerer) -> None:
    report = compare(answers_of(serve(echo), REQUESTS), serve(changed), REQUESTS)
    n_chats = sum(request.path == "/chat" for request in REQUESTS)
    assert [each.how for each in report.differences] == ["one by one"] * n_chats + ["mixed"] * n_chats
    assert all(each.request.startswith("/chat ") and each.expected != each.got for each in report.differences)


def test_what_is_known_of_a_prompt_counts_only_one_by_one(serve: Callable[[Answerer], Served]) -> None:
    def warm(path: str, body: bytes) -> tuple[int, str, bytes]:
        status, kind, content = echo(path, body)
        return status, kind, content.replace(b'"cached_tokens":0', b'"cached_tokens":5')

    report = compare(answers_of(serve(echo), REQUESTS[:3]), serve(warm), REQUESTS[:3])
    assert {each.how for each in report.differences} == {"one by one"}


def test_other_versions_are_told_and_do_not_count(serve: Callable[[Answerer], Served]) -> None:
    def of_version(number: int) -> Answerer:
        def answer(path: str, body: bytes) -> tuple[int, str, bytes]:
            text = f'{{"version":"0.{number}","git_sha":"{number:012}","system_fingerprint":"modelc-{number}"}}'
            return 200, "application/json", text.encode()

        return answer

    expected = answers_of(serve(of_version(1)), REQUESTS)
    report = compare(expected, serve(of_version(2)), REQUESTS)
    assert report.differences == []
    assert report.builds is not None
    assert "0.1" in report.builds[0]
    assert "0.2" in report.builds[1]
    assert compare(expected, serve(of_version(1)), REQUESTS).builds is None


def test_the_requests_have_names_of_their_own_and_all_ways_to_fail() -> None:
    assert len({request.name for request in REQUESTS}) == len(REQUESTS)
    paths = {request.path for request in REQUESTS}
    assert {"/infer", "/v1/embeddings", "/chat/stream", "/v1/completions", "/tokenize", "/lora/load"} <= paths


@pytest.mark.parametrize("url", ["ftp://127.0.0.1", "http://", "http://[::1", "http://127.0.0.1:many"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(BadInputError, match="not the address of a server"):
        Served(url)


def test_a_server_that_does_not_answer_is_named() -> None:
    with socket.socket() as taken:  # bound, and not listening
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(ModelcError, match=f"no answer.*127.0.0.1:{taken.getsockname()[1]}"):
            Served(f"http://127.0.0.1:{taken.getsockname()[1]}").ask(REQUESTS[0])


def test_a_server_that_does_not_start_is_one_line(tmp_path: Path) -> None:
    program = tmp_path / "broken"
    program.write_text("#!/bin/sh\necho 'modelc: nothing works' >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(ModelcError, match="it did not start"):
        Served([str(program)])
    with pytest.raises(ModelcError, match="cannot be started"):
        Served([str(tmp_path / "none")])
