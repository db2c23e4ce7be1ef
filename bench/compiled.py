"""Compiled files beside `modelc run`: `python -m bench.compiled`. The servers take turns, request by request."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import hashlib
import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from bench.engines import BenchError
from bench.goals import Goal
from bench.machine import describe_machine
from bench.models import PUBLISHED, prepare
from bench.report import Table
from bench.startup import COMMAND, Server, memory_of, served

PAGE = Path(__file__).parent / "COMPILED.md"
FORMATS = {"pyz": 16.0, "elf": 36.0}  # and how many MB they may have without the weights
PROMPT = 512
CONTEXT = 100
TOKENS = 64
VOCABULARY = 40_000
Row = tuple[str, str, str]


def main() -> int:
    """Measure, show, return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.compiled", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--record", action="store_true", help="write the table to bench/COMPILED.md")
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as folder:
            table = _measure(Path(folder), options.rounds)
    except (BenchError, subprocess.CalledProcessError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    print(table.as_text())
    if options.record:
        machine = ", ".join(f"{name} {value}" for name, value in describe_machine().items())
        head = f"# Compiled files\n\n{datetime.date.today().isoformat()}; {machine}.\n\n"
        PAGE.write_text(head + table.as_markdown() + "\n", "utf-8")
    return 0


def _measure(folder: Path, rounds: int) -> Table:
    model = prepare(PUBLISHED, None).packed
    files = {format: folder / f"model.{format}" for format in FORMATS}
    rows = _compiling(model, files, folder)
    for format, file in files.items():
        rows += _starts(format, file, folder, rounds)
    rows += _speeds(model, files, rounds)
    return Table(f"SmolLM2-135M-Instruct {PUBLISHED}", ("what", "value", "goal"), tuple(rows))


def _compiling(model: Path, files: Mapping[str, Path], folder: Path) -> list[Row]:
    empty = {**os.environ, "MODELC_CACHE": str(folder / "kernels")}
    first = _compile(model, files["pyz"], "pyz", empty)
    digest = hashlib.sha256(files["pyz"].read_bytes()).hexdigest()
    again = _compile(model, files["pyz"], "pyz", empty)
    if hashlib.sha256(files["pyz"].read_bytes()).hexdigest() != digest:
        raise BenchError("two builds differ")
    rows = [
        ("compile, no kernel cached", f"{first:.1f} s", _at_most(90, first)),
        ("compile, kernels cached", f"{again:.1f} s", _at_most(5, again)),
    ]
    _compile(model, files["elf"], "elf", empty)
    for format, file in files.items():
        size = (file.stat().st_size - model.stat().st_size) / 1e6
        rows.append((f"{format}: size without weights", f"{size:.1f} MB", _at_most(FORMATS[format], size)))
    return rows


def _compile(model: Path, output: Path, format: str, environment: Mapping[str, str]) -> float:
    start = time.perf_counter()
    command = [COMMAND, "compile", model, "-o", output, "--format", format]
    subprocess.run(command, env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def _starts(format: str, file: Path, folder: Path, rounds: int) -> list[Row]:
    first, warm, resident = [], [], []
    for number in range(rounds):
        environment = {**os.environ, "MODELC_CACHE": str(folder / f"{format}-{number}")}
        with served([file], environment) as server:
            first.append(server.health_s)
        with served([file], environment) as server:
            warm.append(server.health_s)
            if (memory := memory_of(server.pid, file)) is not None:
                resident.append(memory.anonymous / 1e6)
    rows = [
        (f"{format}: first start to `/health`", f"{median(first):.2f} s", _at_most(1.2, median(first))),
        (f"{format}: warm start to `/health`", f"{median(warm):.2f} s", _at_most(0.5, median(warm))),
    ]
    if resident:
        what = f"{format}: memory that no file backs, after an answer"
        rows.append((what, f"{median(resident):.0f} MB", _at_most(120, median(resident))))
    return rows


def _speeds(model: Path, files: Mapping[str, Path], rounds: int) -> list[Row]:
    commands: dict[str, list[str | Path]] = {"run": [COMMAND, "run", model]}
    commands |= {format: [file] for format, file in files.items()}
    prefill: dict[str, list[float]] = {name: [] for name in commands}
    decode: dict[str, list[float]] = {name: [] for name in commands}
    with contextlib.ExitStack() as stack:
        servers = {name: stack.enter_context(served(command, os.environ)) for name, command in commands.items()}
        for number in range(-1, rounds):  # the first one warms up
            for name, server in servers.items():
                seed = 10 * number + 10
                prompt = _seconds(server, PROMPT, 1, seed)
                short, long = (_seconds(server, CONTEXT, n, seed + n) for n in (1, TOKENS + 1))
                if number >= 0:
                    prefill[name].append(PROMPT / prompt)
                    decode[name].append(TOKENS / (long - short))
    rows = []
    for what, speeds in ((f"prefill {PROMPT}", prefill), (f"decode at {CONTEXT}", decode)):
        for format in files:
            ratio = median(a / b for a, b in zip(speeds[format], speeds["run"], strict=True))
            value = f"{median(speeds[format]):.0f} tokens/s, {ratio:.2f} of `run`"
            rows.append((f"{format}: {what}, over HTTP", value, Goal(0.97).verdict(ratio)))
    return rows


def _seconds(server: Server, context: int, n: int, seed: int) -> float:
    """Seconds that `n` tokens after `context` random ones take."""
    random_ids = random.Random(seed)
    prompt = [random_ids.randrange(1000, VOCABULARY) for _ in range(context)]
    body = json.dumps({"prompt": prompt, "max_tokens": n, "logit_bias": {"2": -100}})
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    start = time.perf_counter()
    connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    answer = json.loads(response.read())
    taken = time.perf_counter() - start
    if response.status != 200 or answer["usage"]["completion_tokens"] != n:
        raise BenchError(f"the server answered {response.status}: {answer}")
    return taken


def _at_most(limit: float, value: float) -> str:
    return Goal(limit, at_least=False).verdict(value)


if __name__ == "__main__":
    sys.exit(main())
