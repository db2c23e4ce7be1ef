"""One small compiled file for all tests of this folder, and a way to start it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from modelc.bundle.compiling import compile_model
from modelc.bundle.interpreter import Interpreter, interpreter
from modelc.bundle.isas import ISAS, host_features, host_machine
from modelc.bundle.target import host_target
from modelc.errors import NotFoundError, UnsupportedError
from modelc.formats import modelc
from tests.runtime.tiny_mlp import mlp_of

READY = re.compile(r"modelc: serving .* on (http://\S+)")
Start = Callable[..., subprocess.CompletedProcess[str]]
SHAPES = {"layer0.weight": (24, 16), "layer0.bias": (24,), "layer1.weight": (5, 24)}
LEAST = next(isa for isa in ISAS if isa.machine == host_machine() and host_features().issuperset(isa.features))


def build(weights: Path, output: Path, **changes: object) -> Path:
    """A compiled file of the model at `weights`, with kernels for the least instruction set."""
    target = host_target()
    assert target is not None
    compile_model(weights, output, target, **{"isas": [LEAST], **changes})  # type: ignore[arg-type]
    return output


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "tiny.modelc"
    modelc.write(mlp_of(SHAPES), path)
    return path


@pytest.fixture(scope="session")
def built(weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(weights, tmp_path_factory.mktemp("built") / "tiny.pyz", options=[["--threads", "1"], ["--port", "0"]])


@pytest.fixture(scope="session")
def python() -> Interpreter:
    """This Python, as an executable carries it."""
    try:
        return interpreter()
    except (UnsupportedError, NotFoundError) as error:
        pytest.skip(f"this Python cannot be taken along: {error}")


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Nothing but a path and a cache of its own."""
    cache = tmp_path_factory.mktemp("cache")
    return {"PATH": os.environ["PATH"], "MODELC_CACHE": str(cache), "HOME": str(cache)}


def start(file: Path, *tokens: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a compiled file to its end."""
    command = [sys.executable, str(file), *tokens]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=120)


@contextmanager
def serving(command: Sequence[str], env: dict[str, str]) -> Iterator[str]:
    """Run a server; gives its address, and checks that it ends without a complaint when it is told to."""
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)
    with process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if ready := READY.search(line):
                break
        else:
            pytest.fail("".join(said))
        try:
            yield ready[1]
        finally:
            process.terminate()
            rest = process.stderr.read()
    assert process.returncode == 0, rest
