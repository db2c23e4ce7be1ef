"""How many of the team's threads take part in a step.

When other processes take the cores, threads wait for one another at every barrier and a team is slower than one
thread alone, by orders of magnitude. The answer does not depend on the number of threads, so it can follow what the
machine has to give.
"""

from __future__ import annotations

FIRST_RESPITE = 8  # steps with fewer threads after a stall
LONGEST_RESPITE = 512


class Pace:
    """Chooses the number of threads for each step from what steps cost so far.

    A stall (a wait far beyond any imbalance of work) starts a trial with one thread; it stays if the trial was faster
    than the stalled step, for a while that doubles each time.

    Args:
        n_threads: size of the team.
    """

    def __init__(self, n_threads: int) -> None:
        self._n_threads = n_threads
        self._respite = FIRST_RESPITE
        self._left = 0  # steps that still run with one thread
        self._stalled_s = 0.0  # cost of a row in the step that stalled
        self._trial = False

    def threads(self) -> int:
        """Threads for the next step."""
        return 1 if self._left > 0 else self._n_threads

    def note(self, rows: int, seconds: float, stalls: int) -> None:
        """Tell what the step cost: rows computed, time, stalls at barriers."""
        cost = seconds / rows
        if self._left > 0:
            if self._trial and cost > self._stalled_s:
                self._left = 0  # not the neighbours' fault
            self._trial = False
            self._left = max(self._left - 1, 0)
        elif stalls:
            self._stalled_s, self._trial, self._left = cost, True, self._respite
            self._respite = min(2 * self._respite, LONGEST_RESPITE)
        else:
            self._respite = max(FIRST_RESPITE, self._respite - 1)
