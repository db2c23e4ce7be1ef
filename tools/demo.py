"""`make demo`: packs a small model, serves it, asks it one question, and keeps serving until Ctrl-C.

Where standard output is not a terminal, it stops the server after the answer and exits with 0.
"""

import contextlib
import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tools.fetch_smollm2 import FetchError, fetch, models_folder

MODELC = [sys.executable, "-m", "modelc"]
PACKED = Path("build", "demo", "smollm2-135m-instruct.modelc")
USUAL_PORT = 8080
SYSTEM = "You are a helpful assistant."
START_S = 300.0  # the first start compiles the kernels
STOP_S = 10.0


class DemoError(Exception):
    """The demo cannot go on; the text says why in one line."""


def main() -> int:
    """Run the demo and return the exit code."""
    question = " ".join(sys.argv[1:])
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.default_int_handler)
    try:
        weights = fetch(models_folder())
        _pack(weights)
        port = free_port()
        with _served(port) as server:
            print(f"\n> {question}", flush=True)
            for text in ask(port, question):
                print(text, end="", flush=True)
            print(f"\n\nserving on http://127.0.0.1:{port}, ask it yourself:", flush=True)
            print(f"  {curl_example(port, question)}", flush=True)
            if sys.stdout.isatty():
                print("\nCtrl-C stops the server.", flush=True)
                server.wait()
    except KeyboardInterrupt:
        print()
    except (OSError, http.client.HTTPException, ValueError, LookupError) as error:
        print(f"demo: the answer broke off: {type(error).__name__} {error}", file=sys.stderr)
        return 1
    except (DemoError, FetchError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    return 0


def free_port() -> int:
    """Return the usual port when nobody listens there, else one that the system chooses."""
    for port in (USUAL_PORT, 0):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)) as listener:
            return int(listener.getsockname()[1])
    raise DemoError("no TCP port is free on 127.0.0.1")


def ask(port: int, question: str) -> Iterator[str]:
    """Yield the pieces of the answer from `/v1/chat/completions` as they arrive."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    body = json.dumps({"messages": messages(question), "stream": True})
    connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    if response.status != 200:
        raise DemoError(f"the server answered {response.status}: {response.read(1000).decode('utf-8', 'replace')}")
    answered = False
    for line in response:
        data = line.decode("utf-8").strip().removeprefix("data: ")
        if data == "[DONE]":
            break
        if data:
            text = json.loads(data)["choices"][0]["delta"].get("content")
            answered = answered or bool(text)
            yield text or ""
    connection.close()
    if not answered:
        raise DemoError("the server's answer was empty")


def messages(question: str) -> list[dict[str, str]]:
    """Return the conversation: without a system message, this model's own one makes it answer in French at times."""
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]


def curl_example(port: int, question: str) -> str:
    """Return a shell command that asks the same question."""
    body = json.dumps({"messages": messages(question)}).replace("'", r"'\''")
    header = "-H 'Content-Type: application/json'"
    return f"curl http://127.0.0.1:{port}/v1/chat/completions {header} -d '{body}'"


def _pack(weights: Path) -> None:
    PACKED.parent.mkdir(parents=True, exist_ok=True)
    arguments = ["pack", str(weights), "-o", str(PACKED)]
    print("$ " + " ".join(["modelc", *arguments]), flush=True)
    if subprocess.run([*MODELC, *arguments], check=False).returncode:
        raise DemoError("`modelc pack` failed")


@contextlib.contextmanager
def _served(port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run the server on `port` for the length of the block."""
    arguments = ["run", str(PACKED), "--port", str(port)]
    print("$ " + " ".join(["modelc", *arguments]), flush=True)
    # in a session of its own, so that Ctrl-C reaches it once, as the signal sent below
    server = subprocess.Popen([*MODELC, *arguments], start_new_session=True)
    try:
        _wait_until_ready(server, port)
        yield server
    finally:
        server.terminate()
        try:
            server.wait(STOP_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait_until_ready(server: subprocess.Popen[bytes], port: int) -> None:
    end_s = time.monotonic() + START_S
    while time.monotonic() < end_s:
        if server.poll() is not None:
            raise DemoError(f"the server stopped with exit code {server.returncode}")
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        time.sleep(0.1)
    raise DemoError(f"the server was not ready after {START_S:.0f} seconds")


if __name__ == "__main__":
    sys.exit(main())
