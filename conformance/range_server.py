"""Serves one file on loopback as fast as the system can, or at a given rate; understands ranges.

Usage: `python -m conformance.range_server FILE [BYTES_PER_SECOND]`; prints its port.
"""

import os
import re
import socket
import sys
import threading
import time
from pathlib import Path

PIECE_BYTES = 1 << 22
SLOW_PIECE_BYTES = 1 << 18
ALLOWED_BURST_S = 0.02


class Throttle:
    """Lets bytes through at a rate that all connections share."""

    def __init__(self, bytes_per_s: float) -> None:
        self._bytes_per_s = bytes_per_s
        self._lock = threading.Lock()
        self._next_s = time.monotonic()

    def wait(self, n_bytes: int) -> None:
        """Wait until `n_bytes` more may go."""
        if not self._bytes_per_s:
            return
        with self._lock:
            now_s = time.monotonic()
            self._next_s = max(self._next_s, now_s - ALLOWED_BURST_S) + n_bytes / self._bytes_per_s
            left_s = self._next_s - now_s
        if left_s > 0:
            time.sleep(left_s)


def serve(connection: socket.socket, descriptor: int, size: int, throttle: Throttle, piece_bytes: int) -> None:
    """Answer requests until the client goes."""
    with connection, connection.makefile("rb") as requests:
        while True:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                line = requests.readline()
                if not line:
                    return
                head += line
            found = re.search(rb"range: bytes=(\d+)-(\d+)", head, re.IGNORECASE)
            start, end = (int(found[1]), int(found[2]) + 1) if found else (0, size)
            status = "206 Partial Content" if found else "200 OK"
            lines = [f"HTTP/1.1 {status}", f"Content-Length: {end - start}", 'ETag: "one"']
            if found:
                lines.append(f"Content-Range: bytes {start}-{end - 1}/{size}")
            connection.sendall("\r\n".join([*lines, "", ""]).encode())
            while start < end:
                sent = os.sendfile(connection.fileno(), descriptor, start, min(piece_bytes, end - start))
                throttle.wait(sent)
                start += sent


def main() -> None:
    """Serve until killed."""
    path, rate = Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
    throttle = Throttle(rate)
    descriptor, size = os.open(path, os.O_RDONLY), path.stat().st_size
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        connection, _ = listener.accept()
        arguments = (connection, descriptor, size, throttle, SLOW_PIECE_BYTES if rate else PIECE_BYTES)
        threading.Thread(target=_serve_quietly, args=arguments, daemon=True).start()


def _serve_quietly(*arguments: object) -> None:
    try:
        serve(*arguments)  # type: ignore[arg-type]
    except OSError:
        return  # the client is gone


if __name__ == "__main__":
    main()
