"""What steps cost by their number of rows, as measured while serving: what a proposed token must be worth.

On a small model that stays in the caches every row counts; on a large one, whose weights come from memory, a few more
rows are nearly free. An answer does not depend on how many tokens are proposed, so that number can follow the clock.
"""

from __future__ import annotations

import numpy as np

TRIES = 3  # steps of a size before its time counts: other processes make single steps long
MEMORY = 512  # steps after which everything is measured anew: contexts grow, neighbours come and go


class StepCosts:
    """Seconds of steps whose rows all have logits: those of answers, with and without proposals.

    Args:
        max_rows: rows in the largest such step.
    """

    def __init__(self, max_rows: int) -> None:
        self._all_rows = np.arange(max_rows + 1)
        self._tries: dict[int, int] = {}  # rows -> steps
        self._shortest: dict[int, float] = {}  # rows -> seconds
        self._known: list[int] = []  # sizes with enough tries, ascending
        self._seconds: list[float] = []  # by rows; between known sizes on a line, outside as the nearest one
        self._steps = 0
        self._sequences = 1

    def note(self, rows: int, sequences: int, seconds: float) -> None:
        """Tell what a step cost that computed `rows` rows of `sequences` sequences."""
        self._steps += 1
        if self._steps % MEMORY == 0:
            self._tries.clear()
            self._shortest.clear()
        self._tries[rows] = self._tries.get(rows, 0) + 1
        self._shortest[rows] = min(seconds, self._shortest.get(rows, seconds))
        self._known = sorted(size for size, tries in self._tries.items() if tries >= TRIES)
        if self._known:
            rising = np.maximum.accumulate([self._shortest[size] for size in self._known])
            self._seconds = np.interp(self._all_rows, self._known, rising).tolist()
        self._sequences = sequences

    def seconds(self, rows: int) -> float | None:
        """What a step of so many rows costs; None until steps as small are known."""
        if not self._known or rows < self._known[0]:
            return None
        return self._seconds[min(rows, len(self._seconds) - 1)]

    def ratio(self, proposed: int) -> float:
        """What a step costs with so many proposed tokens for each sequence, over one without.

        Steps larger than all known ones count as cheap, so that they are tried. Until a step as small as one without
        proposals is known, the ratio is infinite, so that such steps come first.
        """
        rows = self._sequences
        if not self._known or rows < self._known[0]:
            return float("inf")
        return self._seconds[min(rows * (1 + proposed), len(self._seconds) - 1)] / self._seconds[rows]
