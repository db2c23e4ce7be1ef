"""Requests made from the OpenAPI document, right and wrong, sent to a server, and its answers held to the document."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# What a schema cannot say (a prompt without tokens, a message without content) is answered 400 all the same.
CONFIG = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "400", "404"]
"""


def try_schema(url: str, folder: Path, n_examples: int, phases: str) -> None:
    """Fail with a report when an answer is a 5xx, is not described, or accepts what the document forbids.

    Args:
        url: Of a server.
        folder: For temporary files.
        n_examples: Requests for each operation, at most.
        phases: `fuzzing`, `coverage` (all edges of all fields), or both with a comma.
    """
    config = folder / "schemathesis.toml"
    config.write_text(CONFIG)
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "run", f"{url}/schema"]
    command += ["-n", str(n_examples), "--phases", phases, "--checks", "all", "--generation-deterministic"]
    command += ["--continue-on-failure", "--no-color"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    assert " passed" in done.stdout, done.stdout
