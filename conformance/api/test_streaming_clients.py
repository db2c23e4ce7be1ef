"""200 clients that stream at the same time: every answer is whole and the same, and memory stays flat."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from modelc.formats.modelc import write
from tests.api.test_server import free_port, wait_for
from tests.models.tiny_llama import tiny_llama

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")]

CLIENTS = 200
ROUNDS = 12
WARM_UP = 4  # rounds after which all buffers have been used
GROWTH_BYTES = 12 << 20
PROGRAM = """
import sys
from modelc import runtime
from modelc.api.options import ServeOptions
from modelc.api.server import serve

sys.exit(serve(lambda: runtime.load(sys.argv[1], threads=1), ServeOptions(port=int(sys.argv[2]))))
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[int, str]]:
    """Process id and URL of a server of a model that answers in bytes."""
    path, port = tmp_path / "tiny.modelc", free_port()
    write(tiny_llama("q8_0", vocab_size=256), path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(path), str(port)], env=environment)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(url, (200, "ok"))
        yield process.pid, url
    finally:
        process.terminate()
        assert process.wait(timeout=60) == 0


def resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def stream(client: httpx.AsyncClient, index: int) -> list[str]:
    """The texts of a streamed chat; the prompt and seed depend on the index."""
    fields = {"messages": [{"role": "user", "content": f"client {index % 10}"}], "seed": index % 10}
    fields |= {"temperature": 1.0, "max_tokens": 40, "stream": True, "stream_options": {"include_usage": True}}
    async with client.stream("POST", "/v1/chat/completions", json=fields) as response:
        assert response.status_code == 200
        events = [line[6:] async for line in response.aiter_lines() if line]
    assert events[-1] == "[DONE]"
    chunks = [json.loads(event) for event in events[:-1]]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] > 0
    assert chunks[-2]["choices"][0]["finish_reason"] in ("stop", "length")
    return [choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"]]


async def round_of(url: str) -> list[str]:
    limits = httpx.Limits(max_connections=CLIENTS)
    async with httpx.AsyncClient(base_url=url, timeout=120, limits=limits) as client:
        return ["".join(texts) for texts in await asyncio.gather(*(stream(client, i) for i in range(CLIENTS)))]


def test_two_hundred_clients_stream_without_an_error_and_memory_stays_flat(server: tuple[int, str]) -> None:
    pid, url = server
    first = asyncio.run(round_of(url))
    assert all(first[i] == first[i % 10] for i in range(CLIENTS))
    sizes = []
    for _ in range(ROUNDS):
        assert asyncio.run(round_of(url)) == first
        sizes.append(resident_bytes(pid))
    assert max(sizes[WARM_UP:]) - sizes[WARM_UP] < GROWTH_BYTES, sizes
    metrics = httpx.get(f"{url}/metrics").text
    assert f'endpoint="/v1/chat/completions",status="200"}} {float(CLIENTS * (ROUNDS + 1))}' in metrics
    assert "modelc_running_generations 0.0" in metrics
