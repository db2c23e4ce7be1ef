"""How many rows of new prompts a step computes beside answers, so that tokens keep coming."""

from __future__ import annotations

SLOWER = 4.0  # a step with rows of prompts may take so many times what the answers take alone
TILE = 4  # rows that a matmul computes at once: their number in a step is a multiple of it
FIRST, LEAST, MOST = 16, 4, 64


class PromptShare:
    """Follows what steps cost: the further a prompt is, the more a row of it costs in attention."""

    def __init__(self) -> None:
        self._rows = FIRST

    def rows(self, answers: int) -> int:
        """Rows of prompts for a step with so many rows of answers."""
        return max((answers + self._rows) // TILE * TILE - answers, LEAST)

    def note(self, answers: int, prompts: int, seconds: float, alone_s: float | None) -> None:
        """Tell what a step cost.

        Args:
            answers: its rows of answers.
            prompts: its rows of prompts, at least 1.
            seconds: how long it took.
            alone_s: how long a step with only the answers takes, None where that is not known yet.
        """
        if alone_s is None:
            return
        a_row = max(seconds - alone_s, 1e-9) / prompts
        wanted = int((SLOWER - 1.0) * alone_s / a_row)
        if wanted < self._rows:
            self._rows = max(wanted, self._rows // 2, LEAST)  # one slow step may be another process's fault
        elif prompts >= self.rows(answers):
            self._rows = min(wanted, self._rows + TILE, MOST)
