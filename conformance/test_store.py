"""Eight processes do random things to one store for a minute: each is done or refused, and the store stays whole."""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import random
import time
from pathlib import Path

import pytest

from modelc.cli import main
from modelc.store import Store
from tests.formats.gguf_builder import small_gguf

N_PROCESSES = 8
RUN_S = 60.0
NAMES = ("a", "b", "c")
REFUSED = (1, 2)


def command(draw: random.Random, gguf: Path, folder: Path) -> list[str]:
    name, version = draw.choice(NAMES), str(draw.randint(1, 12))
    return draw.choice(
        [
            ["pack", str(gguf), "--name", name],
            ["pack", str(gguf), "--name", name, "--compress"],
            ["cp", draw.choice([name, f"{name}:{version}"]), f"{draw.choice(NAMES)}{version}"],
            ["cp", str(folder / "outside.modelc"), f"{name}{version}"],
            ["switch", name, version],
            ["rm", name, "--all"],
            ["rm", name, "--force"],
            ["rm", f"{name}:{version}"],
            ["rm", f"{name}{version}", "--all"],
            ["list", "--json"],
            ["list"],
            ["search", name],
            ["verify", draw.choice([name, f"{name}:{version}"])],
            ["inspect", name, "--json"],
        ]
    )


def work(folder: Path, seed: int) -> None:
    """Run commands for RUN_S; what is neither done nor refused in one line goes into a file."""
    os.environ["MODELC_STORE"] = str(folder / "store")
    os.environ["MODELC_CACHE"] = str(folder / "cache")
    draw = random.Random(seed)
    done = refused = 0
    faults = []
    end_s = time.monotonic() + RUN_S
    while time.monotonic() < end_s:
        tokens = command(draw, folder / "tiny.gguf", folder)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(tokens)
        told = err.getvalue()
        clear = told.startswith("modelc: ") and told.count("\n") == 1 and "internal error" not in told
        if code == 0 and not told:
            done += 1
        elif code in REFUSED and clear:
            refused += 1
        else:
            faults.append(f"{tokens}: {code}: {told}")
    (folder / f"{seed}.json").write_text(json.dumps({"done": done, "refused": refused, "faults": faults[:20]}))


@pytest.mark.slow
def test_processes_that_work_on_one_store_at_once(tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf").write_bytes(small_gguf().build())
    assert main(["pack", str(tmp_path / "tiny.gguf"), "-o", str(tmp_path / "outside.modelc")]) == 0
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=work, args=(tmp_path, seed)) for seed in range(N_PROCESSES)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(RUN_S + 120)
        assert worker.exitcode == 0
    results = [json.loads((tmp_path / f"{seed}.json").read_text()) for seed in range(N_PROCESSES)]
    assert [result["faults"] for result in results] == [[]] * N_PROCESSES
    print(sum(result["done"] for result in results), "done,", sum(result["refused"] for result in results), "refused")
    assert all(result["done"] > 5 for result in results)
    check_store(tmp_path / "store")


def check_store(folder: Path) -> None:
    """Nothing half-written is left, every file is whole, and what is active is a version."""
    store = Store(folder)
    left = [path.name for path in folder.iterdir() if path.name.startswith(".") and path.name != ".lock"]
    assert left == []
    for model in store.models():
        assert model.versions
        assert model.main is None or model.active in model.versions
        for version in model.versions:
            assert main(["verify", f"{model.name}:{version}", "--store", str(folder)]) == 0
