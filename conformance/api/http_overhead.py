"""What HTTP costs: tokens a second of a chat through the library, and through the server of the same engine.

`python -m conformance.api.http_overhead MODEL` measures them in turn on one engine thread, the client in a process of
its own, and prints medians and the ratios to the library's.
"""

from __future__ import annotations

import http.client
import json
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import modelc
from modelc.api.address import bind_listener, url_of
from modelc.api.http_loop import run_until
from modelc.api.options import ServeOptions
from modelc.api.state import ServerState

N_TOKENS = 256
REPEATS = 15
MESSAGES = [{"role": "user", "content": "Tell me a long story about a dragon and a knight."}]


def client(url: str) -> None:
    """Ask once for each line of standard input that says `whole` or `streamed`; prints the seconds it took."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    for line in sys.stdin:
        body = {"messages": MESSAGES, "max_tokens": N_TOKENS, "stream": line.strip() == "streamed"}
        started = time.perf_counter()
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
        answer = connection.getresponse()
        while answer.read1():  # as the pieces come
            pass
        answer.read()
        print(time.perf_counter() - started, flush=True)


def main(path: Path) -> None:
    """Measure, and print."""
    stop = threading.Event()
    listener = bind_listener("127.0.0.1", 0)
    command = [sys.executable, "-m", "conformance.api.http_overhead", "--client", url_of(listener)]
    with (
        modelc.load(path, threads=1) as model,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child,
    ):
        server = threading.Thread(target=run_until, args=(stop, ServerState(ServeOptions(), model), listener))
        server.start()

        def ask(kind: str) -> float:
            if kind == "library":
                started = time.perf_counter()
                model.chat(MESSAGES, max_tokens=N_TOKENS)
                return time.perf_counter() - started
            assert child.stdin is not None
            assert child.stdout is not None
            print(kind, file=child.stdin, flush=True)
            return float(child.stdout.readline())

        times: dict[str, list[float]] = {"library": [], "whole": [], "streamed": []}
        for repeat in range(REPEATS + 1):
            for kind, seconds in times.items():
                taken = ask(kind)
                if repeat > 0:  # the first fills the prefix cache
                    seconds.append(taken)
        child.communicate()  # ends its input
        stop.set()
        server.join()
    for kind, seconds in times.items():
        ratios = [library / mine for library, mine in zip(times["library"], seconds, strict=True)]
        speed = N_TOKENS / statistics.median(seconds)
        print(f"{kind:9} {speed:6.1f} tokens/s, {statistics.median(ratios):.3f} of the library's")


if __name__ == "__main__":
    given: Any = sys.argv[1:]
    if given[0] == "--client":
        client(given[1])
    else:
        main(Path(given[0]))
