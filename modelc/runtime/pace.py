"""How many of the team's threads take part in a step.

When other processes take the cores, threads wait for one another at every barrier and a team is slower than one thread
alone, by orders of magnitude. An answer does not depend on the number of threads, so that number can follow what the
machine has to give.
"""

from __future__ import annotations

import time
from collections.abc import Callable

FIRST_RESPITE_S = 0.02
LONGEST_RESPITE_S = 1.0


class Pace:
    """Chooses the number of threads for each step from what steps cost so far.

    After a stall (a wait far beyond any imbalance of work) one thread works alone for a respite, which doubles while
    stalls go on and shrinks without them; it ends early when one thread turns out to be slower than the stalled team.

    Args:
        n_threads: size of the team.
        clock: seconds, monotonic.
    """

    def __init__(self, n_threads: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._n_threads = n_threads
        self._clock = clock
        self._respite_s = FIRST_RESPITE_S
        self._until_s = 0.0
        self._stalled_rows = 0  # of the step that stalled, until it was compared with one of as many rows
        self._stalled_s = 0.0

    def threads(self) -> int:
        """Threads for the next step."""
        return 1 if self._clock() < self._until_s else self._n_threads

    def note(self, rows: int, seconds: float, n_threads: int, stalls: int) -> None:
        """Tell what a step cost: rows computed, time, threads that took part, stalls at barriers."""
        if n_threads == 1:
            if rows == self._stalled_rows:
                self._stalled_rows = 0
                if seconds > self._stalled_s:
                    self._until_s = 0.0  # not the neighbours' fault
        elif stalls:
            self._stalled_rows, self._stalled_s = rows, seconds
            self._until_s = self._clock() + self._respite_s
            self._respite_s = min(2 * self._respite_s, LONGEST_RESPITE_S)
        else:
            self._respite_s = max(FIRST_RESPITE_S, self._respite_s - seconds)
