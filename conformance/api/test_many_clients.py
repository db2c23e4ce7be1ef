"""Two hundred clients read streams at the same time: every one gets its answer, and memory stays where it was."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from conformance.api.serving import serving

pytestmark = pytest.mark.slow

N_CLIENTS = 200
ROUNDS = 5
KV_BYTES = 256 << 20  # pages are touched when they are first used: few, and after a round they are all there
GROWTH_BYTES = 24 << 20  # of buffers that the allocator keeps


def resident_bytes() -> int:
    """Memory of this process, which is the server's too."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) * 1024


async def stream(host: str, port: int, number: int) -> str:
    """The text that one client reads."""
    reader, writer = await asyncio.open_connection(host, port)
    fields = {"messages": [{"role": "user", "content": f"Count to {number}."}], "max_tokens": 16, "stream": True}
    body = json.dumps(fields).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    assert answer.startswith("HTTP/1.1 200"), answer[:200]
    assert answer.count("data: [DONE]") == 1
    events = [json.loads(line[6:]) for line in answer.splitlines() if line.startswith("data: {")]
    assert [event["choices"][0]["finish_reason"] for event in events][-1] in ("stop", "length")
    return "".join(event["choices"][0]["delta"].get("content", "") for event in events)


async def silent(host: str, port: int) -> None:
    """A client that asks, waits and goes away in the middle of its answer."""
    reader, writer = await asyncio.open_connection(host, port)
    body = json.dumps({"prompt": "Once", "max_tokens": 1000, "stream": True}).encode()
    writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    await reader.readuntil(b"data: ")
    writer.transport.abort()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory from /proc")
def test_two_hundred_streams_at_a_time(smollm2_gguf: Path) -> None:
    async def one_round(host: str, port: int) -> list[str]:
        gone = asyncio.gather(*[silent(host, port) for _ in range(10)])
        texts = await asyncio.gather(*[stream(host, port, number % 50) for number in range(N_CLIENTS)])
        await gone
        return list(texts)

    with serving(smollm2_gguf, kv_memory=KV_BYTES) as url:
        address = urlsplit(url)
        assert address.hostname is not None
        assert address.port is not None
        memory, answers = [], []
        for _ in range(ROUNDS):
            begun = time.monotonic()
            answers.append(asyncio.run(one_round(address.hostname, address.port)))
            memory.append(resident_bytes())
            print(f"{N_CLIENTS} streams in {time.monotonic() - begun:.1f} s, {memory[-1] / 1e6:.0f} MB")
    assert all(round_ == answers[0] for round_ in answers)
    assert answers[0][:50] == answers[0][50:100]
    assert memory[-1] - memory[1] < GROWTH_BYTES
