"""A server on loopback that behaves as hubs, indexes and registries do, also when they misbehave."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


@dataclass
class Page:
    """What is at one path."""

    content: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    ranges: bool = True
    etag: str | None = '"one"'
    authorization: str | None = None  # asked for, else 401
    redirect: str | None = None
    cut_after: int | None = None  # bytes of each answer, then the connection breaks
    cuts: int = 1 << 30  # how many answers are cut
    promised: int | None = None  # a Content-Length that is not true
    faults: deque[Page] = field(default_factory=deque)  # answered first, one a request


class FakeServer:
    """Pages by path, and what was asked for."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.url = ""

    def put(self, path: str, content: bytes | str | dict[str, Any] | list[Any] = b"", **more: Any) -> Page:
        """Put a page at `path`; dicts and lists become JSON."""
        headers = {}
        if isinstance(content, dict | list):
            content, headers = json.dumps(content), {"Content-Type": "application/json"}
        raw = content.encode() if isinstance(content, str) else content
        page = Page(raw, headers=headers | more.pop("headers", {}), **more)
        self.pages[path] = page
        return page

    def counts(self) -> Counter[str]:
        """How often each path was asked for."""
        return Counter(path for path, _ in self.asked)

    def repository(self, name: str, files: dict[str, bytes], *, lfs: bool = True, **info: Any) -> None:
        """Put a model on the hub: what the API tells of it, and its files behind a redirect."""
        commit = hashlib.sha1(name.encode()).hexdigest()
        siblings = []
        for path, content in files.items():
            entry: dict[str, Any] = {"rfilename": path, "size": len(content), "blobId": git_blob(content)}
            if lfs and not path.endswith((".json", ".jinja")):
                sha256 = hashlib.sha256(content).hexdigest()
                entry["lfs"] = {"sha256": sha256, "size": len(content), "pointerSize": 134}
            siblings.append(entry)
            self.put(f"/cdn/{commit}/{path}", content)
            self.put(f"/{name}/resolve/{commit}/{path}", status=302, redirect=f"/cdn/{commit}/{path}")
        self.put(f"/api/models/{name}/revision/main", {"id": name, "sha": commit, "siblings": siblings, **info})


def git_blob(content: bytes) -> str:
    """The name that git gives to a file of this content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _handler(server: FakeServer) -> type[BaseHTTPRequestHandler]:
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            with lock:
                server.asked.append((path, {key.lower(): value for key, value in self.headers.items()}))
                page = server.pages.get(path) or Page(b"Not Found", 404)
                if page.faults:
                    page = page.faults.popleft()
                cut = page.cut_after is not None and page.cuts > 0
                page.cuts -= cut
            if page.authorization is not None and self.headers.get("Authorization") != page.authorization:
                page = Page(b"Unauthorized", 401)
            if page.redirect is not None:
                page = Page(b"", 302, {"Location": page.redirect})
            self._answer(page, cut)

        def _answer(self, page: Page, cut: bool) -> None:
            body, status, headers = page.content, page.status, dict(page.headers)
            found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            if found and page.ranges and status == 200:
                start, end = int(found[1]), min(int(found[2]), len(body) - 1)
                headers.setdefault("Content-Range", f"bytes {start}-{end}/{len(body)}")
                body, status = body[start : end + 1], 206
            if page.etag:
                headers["ETag"] = page.etag
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(body) if page.promised is None else page.promised))
            self.end_headers()
            if cut:
                self.wfile.write(body[: page.cut_after])
                self.close_connection = True
                return
            self.wfile.write(body)
            self.close_connection = page.promised is not None

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that go away are part of the tests."""


@contextmanager
def running(server: FakeServer) -> Iterator[FakeServer]:
    """Serve until the block ends."""
    listener = _Listener(("127.0.0.1", 0), _handler(server))
    server.url = f"http://127.0.0.1:{listener.server_address[1]}"
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown()
        thread.join()
        listener.server_close()
