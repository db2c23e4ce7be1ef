"""Messages typed on a terminal: several lines, a history, words completed."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Self

PROMPT = ">>> "
MORE = "... "
QUOTES = '"""'
HISTORY_LINES = 1000


class PromptReader:
    """Reads messages from standard input; where Python has readline, with editing and a history that is kept.

    Args:
        history: the file that keeps what was typed; None to keep nothing.
        words: what TAB completes at the beginning of a line.
    """

    def __init__(self, history: Path | None, words: Sequence[str]) -> None:
        self._history = history
        self._words = words
        self._readline: ModuleType | None = None

    def __enter__(self) -> Self:
        """Load the history."""
        if not sys.stdout.isatty():
            return self
        with contextlib.suppress(ImportError):  # not on every system
            import readline

            self._readline = readline
            readline.set_completer(self._complete)
            readline.set_completer_delims("\n")
            readline.parse_and_bind("tab: complete")
            if self._history is not None:
                with contextlib.suppress(OSError):
                    readline.read_history_file(self._history)
        return self

    def __exit__(self, *_: object) -> None:
        """Keep the history, readable for its owner alone."""
        if self._readline is None or self._history is None:
            return
        with contextlib.suppress(OSError):
            self._history.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._history.touch(mode=0o600)
            self._readline.set_history_length(HISTORY_LINES)
            self._readline.write_history_file(self._history)

    def read(self) -> str:
        r"""Return the next message; one in `\"\"\"`, or with `\` at the ends of lines, has several lines.

        Raises:
            EOFError: the input has ended.
            KeyboardInterrupt: Ctrl-C.
        """
        line = self._line(PROMPT)
        if line.lstrip().startswith(QUOTES):
            return self._quoted(line.lstrip().removeprefix(QUOTES))
        lines = [line]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            lines.append(self._line(MORE))
        return "\n".join(lines)

    def _quoted(self, first: str) -> str:
        lines = [first]
        while QUOTES not in lines[-1]:
            lines.append(self._line(MORE))
        lines[-1] = lines[-1].partition(QUOTES)[0]
        return "\n".join(lines).strip("\n")

    def _line(self, prompt: str) -> str:
        if sys.stdout.isatty():
            return input(prompt)
        # the answers go elsewhere, and the prompt must not go with them
        print(prompt, end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.rstrip("\n")

    def _complete(self, text: str, state: int) -> str | None:
        found = [word for word in self._words if text and word.startswith(text)]
        return found[state] if state < len(found) else None
