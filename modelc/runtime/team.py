"""The thread team that runs a linked Program.

Members enter the compiled `worker` once and meet the caller at barriers inside it; Python is not involved while there
is work. After a while without work a member comes back and parks on a semaphore, so that an idle server uses no
processor time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from modelc.kernels.env import FIRST_COUNTER, STALLS, STOP, THREAD_BITS
from modelc.runtime.pace import Pace

Compiled = Callable[..., tuple[int, ...]]


class Team:
    """`n_threads` threads (the caller is the first) that execute one program over one environment.

    Args:
        table: int64 (instructions, 16), linked.
        environment: int64 (N_ENV,).
        control: int64, the team's counters.
        execute: compiled `execute`.
        worker: compiled `worker`.
        n_threads: size of the team.
    """

    def __init__(
        self,
        table: npt.NDArray[np.int64],
        environment: npt.NDArray[np.int64],
        control: npt.NDArray[np.int64],
        execute: Compiled,
        worker: Compiled,
        n_threads: int,
    ) -> None:
        self._arguments = (table.ctypes.data, len(table), environment.ctypes.data)
        self._kept_alive: tuple[Any, ...] = (table, environment)
        self._control = control
        self._counters = control[FIRST_COUNTER:]
        self._execute = execute
        self._worker = worker
        self._n_threads = n_threads
        self._pace = Pace(n_threads)
        self._step = 0
        self._announced = 0  # the order that members are woken for
        self._parked = [False] * n_threads
        self._wake = [threading.Semaphore(0) for _ in range(n_threads)]
        self._members = [
            threading.Thread(target=self._serve, args=(tid,), name=f"modelc-{tid}", daemon=True)
            for tid in range(1, n_threads)
        ]
        for member in self._members:
            member.start()

    def run(self, rows: int) -> float:
        """Execute the program once for the batch of `rows` rows in the environment; returns the seconds it took."""
        self._counters[:] = 0
        if self._n_threads == 1:
            start = time.perf_counter()
            self._execute(*self._arguments, 0, 1, 0)
            return time.perf_counter() - start
        n_threads = self._pace.threads()
        order = self._announce(n_threads) if n_threads > 1 else 0
        start = time.perf_counter()
        self._execute(*self._arguments, 0, n_threads, order)
        seconds = time.perf_counter() - start
        self._pace.note(rows, seconds, n_threads, int(self._control[STALLS]))
        self._control[STALLS] = 0
        return seconds

    def _announce(self, n_threads: int) -> int:
        """Wake the members for the next order, and return it; they wait for it in the compiled loop."""
        self._step += 1
        self._announced = self._step << THREAD_BITS | n_threads
        for tid in range(1, n_threads):
            if self._parked[tid]:
                self._parked[tid] = False
                self._wake[tid].release()
        return self._announced

    def close(self) -> None:
        """End the members; the team must be idle."""
        self._control[STOP] = 1
        program, _, environment = self._arguments
        self._execute(
            program, 0, environment, 0, 1, self._announce(self._n_threads)
        )  # no instructions: the order alone
        for member in self._members:
            member.join()
        self._members = []

    def _serve(self, tid: int) -> None:
        order = 0
        while order >= 0:
            (order,) = self._worker(*self._arguments, tid, order)
            # Say that we park, then look once more: an order announced in between would be missed.
            self._parked[tid] = True
            if order >= 0 and self._announced == order:
                self._wake[tid].acquire()
            self._parked[tid] = False
