"""A model's file that another program cuts short while it is served."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from modelc.api.shortened_file import MESSAGE
from modelc.formats.modelc import write
from tests.api.test_server import free_port, wait_for
from tests.models.tiny_llama import tiny_llama

PROGRAM = """
import sys
from modelc import runtime
from modelc.api.options import ServeOptions
from modelc.api.server import serve

sys.exit(serve(lambda: runtime.load(sys.argv[1], threads=2), ServeOptions(port=int(sys.argv[2]))))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGBUS"), reason="the system has no SIGBUS")
def test_the_server_says_so_and_ends(tmp_path: Path) -> None:
    path = tmp_path / "tiny.modelc"
    write(tiny_llama("q8_0", dim=512, ffn_dim=1024, vocab_size=256), path)
    port = free_port()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    command = [sys.executable, "-c", PROGRAM, str(path), str(port)]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(url, (200, "ok"))
        body = {"prompt": "hello", "max_tokens": 3}
        assert httpx.post(f"{url}/complete", json=body, timeout=20).status_code == 200
        os.truncate(path, 4096)
        with pytest.raises(httpx.TransportError):
            httpx.post(f"{url}/complete", json=body, timeout=20)
        assert process.wait(timeout=20) == 1
        assert process.stderr is not None
        assert process.stderr.read().endswith(MESSAGE)
    finally:
        process.kill()
        process.communicate()
