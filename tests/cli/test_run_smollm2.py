"""The whole way with a real model, in processes of its own: pack, run, ask, stop."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

START_S = 180  # kernels may have to be compiled first
QUESTION = {"messages": [{"role": "user", "content": "What is the capital of France?"}], "max_tokens": 16}


@pytest.fixture(scope="module")
def packed(smollm2_gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("packed") / "smollm2.modelc"
    subprocess.run([sys.executable, "-m", "modelc", "pack", str(smollm2_gguf), "-o", str(path)], check=True)
    return path


@pytest.fixture
def server(packed: Path) -> Iterator[subprocess.Popen[str]]:
    flags = ["--port", "0", "--activations", "int16", "--profile"]
    command = [sys.executable, "-m", "modelc", "run", str(packed), *flags]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_packed_model_answers_and_the_server_ends_with_0_and_a_profile(server: subprocess.Popen[str]) -> None:
    assert server.stderr is not None
    line = server.stderr.readline()
    found = re.search(r"http://127\.0\.0\.1:\d+", line)
    assert found, line
    with httpx.Client(base_url=found[0], timeout=START_S) as client:
        assert client.get("/health").json()["status"] == "ok"
        answer = client.post("/v1/chat/completions", json=QUESTION).json()
        assert "Paris" in answer["choices"][0]["message"]["content"]
        with client.stream("POST", "/v1/chat/completions", json={**QUESTION, "stream": True}) as stream:
            events = [line.removeprefix("data: ") for line in stream.iter_lines() if line]
        pieces = [json.loads(event)["choices"][0]["delta"].get("content") or "" for event in events[:-1]]
        assert "".join(pieces) == answer["choices"][0]["message"]["content"]
    server.send_signal(signal.SIGINT)
    assert server.wait(20) == 0
    said = server.stderr.read()
    assert re.search(r"^profile: \d+ steps, ", said, re.MULTILINE)
    assert "Traceback" not in said
