"""The engines as the driver sees them: each a process that lives as long as the run and idles between turns."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parent.parent
PEERS = ROOT / ".peers" / "bin" / "python"


class BenchError(Exception):
    """The measurement cannot go on; the text says why in one line."""


@dataclass(frozen=True, slots=True)
class EngineKind:
    """How to start an engine, and what it can be given.

    Attributes:
        name: for users.
        module: its worker.
        python: the interpreter that has it.
        models: names of the models it is measured with; None for all.
    """

    name: str
    module: str
    python: Path
    models: frozenset[str] | None = None


MODELC = EngineKind("modelc", "bench.workers.modelc", Path(sys.executable))
LLAMA_CPP = EngineKind("llama.cpp", "bench.workers.llama_cpp", PEERS)
OPENVINO = EngineKind("OpenVINO GenAI", "bench.workers.openvino", PEERS, frozenset({"Q4_1"}))


@contextlib.contextmanager
def running(kind: EngineKind) -> Iterator[Engine]:
    """An engine's process, which ends with the block."""
    command = [str(kind.python), "-m", kind.module]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        try:
            yield Engine(kind, process, errors)
        finally:
            process.kill()  # it has nothing to keep


class Engine:
    """A running engine. Made by `running`.

    Attributes:
        name: for users.
    """

    def __init__(self, kind: EngineKind, process: subprocess.Popen[str], errors: IO[bytes]) -> None:
        self.name = kind.name
        self._kind = kind
        self._process = process
        self._errors = errors

    def measures(self, model: str) -> bool:
        """Whether the engine is measured with the model of this name."""
        return self._kind.models is None or model in self._kind.models

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Have the engine do something and wait for it.

        Raises:
            BenchError: it failed, or its process ended.
        """
        assert self._process.stdin is not None and self._process.stdout is not None, "both are pipes"
        try:
            print(json.dumps({"do": do, **arguments}), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise BenchError(f"{self.name} ended: {self._last_words()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise BenchError(f"{self.name}, {do}: {answer['error']}")
        return answer

    def cpu_s(self) -> float:
        """Processor time of the process so far, in seconds; 0 where the system does not tell."""
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text("ascii").rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # user and system time

    def _last_words(self) -> str:
        self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else f"exit code {self._process.returncode}"
