"""The engines as the driver sees them: each a process of its own that lives as long as the measurements and idles between its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

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


class Engine:
    """A running worker process. Use it as a context manager: the process ends with the block."""

    def __init__(self, kind: EngineKind) -> None:
        self.name = kind.name
        self._kind = kind
        self._errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [str(kind.python), "-m", kind.module],
            cwd=ROOT,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

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

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()  # it has nothing to keep
        self._process.communicate()
        self._errors.close()

    def _last_words(self) -> str:
        self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else f"exit code {self._process.returncode}"
