"""How the driver talks to an engine's process: one JSON object a line, a question in, an answer out.

A question names its command in `do` and carries the command's arguments; an answer is what the command returned, or
`error`. The process ends when its standard input is closed.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, Protocol


class Worker(Protocol):
    """What every engine can do. Times are those of the work alone, measured inside the process."""

    def about(self) -> dict[str, Any]:
        """Return the engine's `version` and how it was built or set (`detail`)."""

    def load(self, model: str, threads: int) -> dict[str, Any]:
        """Load a weights file in place of the one before, for this many threads."""

    def prefill(self, n: int, seed: int) -> dict[str, Any]:
        """Process a prompt of `n` tokens from nothing and choose the next token: `seconds`."""

    def decode(self, context: int, n: int) -> dict[str, Any]:
        """Generate `n` tokens, greedily, after `context` others that are not part of the time: `seconds`."""


def serve(worker: Worker, **further: Callable[..., dict[str, Any]]) -> None:
    """Answer questions until standard input is closed.

    Args:
        worker: the engine.
        further: commands that only this engine has.
    """
    answer_questions(
        {
            "about": worker.about,
            "load": worker.load,
            "prefill": worker.prefill,
            "decode": worker.decode,
            **further,
        }
    )


def answer_questions(commands: Mapping[str, Callable[..., dict[str, Any]]]) -> None:
    """Answer questions by the command they name, until standard input is closed."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what an engine prints must not get between the answers
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = commands[question.pop("do")](**question)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)
