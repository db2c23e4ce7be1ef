"""The machine that runs tables of array instructions: compiled opcodes, a thread team, a limit on memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from modelc.kernels import env
from modelc.kernels.objects import ObjectCache, python_function
from modelc.kernels.source import KernelSource, Progress
from modelc.memory_limit import memory_limit
from modelc.onnx.values import Array
from modelc.runtime.memory import allocate
from modelc.runtime.team import Team

TEAM_WORK = 200_000  # multiply-adds or the like that are worth waking the team for
BARRIER_MANY = 2  # a barrier before the instruction: each may read what the one before wrote
SPINS = 20_000
MEMORY_SHARE = 2  # the arrays of a model may fill one part in this many of the machine's memory


def address(array: Array) -> int:
    """Where the first element is."""
    place: int = array.__array_interface__["data"][0]
    return place


def float_bits(value: float) -> int:
    """How an instruction carries a float32."""
    return int(np.float32(value).view(np.int32))


class Machine:
    """Runs instructions on arrays anywhere in memory. One caller at a time.

    Attributes:
        n_threads: size of the team.
        memory_limit: most bytes that the values of a run may have.

    Args:
        n_threads: size of the team.
        kernels: where compiled opcodes come from.
        progress: told about each opcode that has to be compiled.
    """

    def __init__(self, n_threads: int, kernels: KernelSource | None = None, progress: Progress | None = None) -> None:
        self.n_threads = n_threads
        self.memory_limit = memory_limit() // MEMORY_SHARE
        self._kernels = kernels or ObjectCache()
        self._progress = progress
        self._addresses: dict[str, int] = {}
        found = self._kernels.addresses(["execute", "worker", "array_steps"], progress)
        self._execute: Callable[..., tuple[int, ...]] = python_function(found["execute"], 6, 0)
        self._env = allocate(env.N_ENV, np.int64)
        self._control = allocate(env.FIRST_COUNTER + env.COUNTER_WORDS, np.int64)
        self._env[env.CONTROL] = address(self._control)
        self._env[env.SPINS] = SPINS
        self._env[env.N_ROWS] = 2  # any number but one: barriers of larger batches
        self._env[env.STEP_ENVIRONMENT] = self._env_address = address(self._env)
        self._steps = allocate(env.I_WORDS, np.int64).reshape(1, env.I_WORDS)
        self._steps[0, env.I_ADDRESS] = found["array_steps"]
        self._team: Team | None = None
        if n_threads > 1:
            worker = python_function(found["worker"], 5, 1)
            self._team = Team(self._steps, self._env, self._control, self._execute, worker, n_threads)

    def row(self, opcode: str, fields: Sequence[int]) -> list[int]:
        """An instruction: `fields` are its numbers from the third on."""
        place = self._addresses.get(opcode)
        if place is None:
            place = self._kernels.addresses([opcode], self._progress)[opcode]
            self._addresses[opcode] = place
        empty = [0] * (env.I_ADDRESS - 2 - len(fields))
        return [0, BARRIER_MANY, *fields, *empty, place]

    def run(self, table: npt.NDArray[np.int64], work: int, cycles: npt.NDArray[np.int64] | None = None) -> None:
        """Run all instructions of `table`, int64 (n, 16), in order.

        `work` decides whether the team is woken; `cycles`, int64 (n,), is added to.
        """
        self._env[env.PROFILE] = 0 if cycles is None else address(cycles)
        if self._team is None or work < TEAM_WORK:
            self._execute(address(table), len(table), self._env_address, 0, 1, 0)
            return
        self._env[env.STEP_TABLE] = address(table)
        self._env[env.STEP_COUNT] = len(table)
        if cycles is not None:
            # The team's own table would be counted too: the members' loop is left out while profiling.
            self._execute(address(table), len(table), self._env_address, 0, 1, 0)
            return
        self._team.run(2)

    @contextmanager
    def limited(self, n_bytes: int) -> Iterator[None]:
        """A lower limit on memory, for what is computed inside."""
        limit = self.memory_limit
        self.memory_limit = min(limit, n_bytes)
        try:
            yield
        finally:
            self.memory_limit = limit

    def close(self) -> None:
        """End the team's threads."""
        if self._team is not None:
            self._team.close()
            self._team = None


def as_table(rows: Sequence[Any]) -> npt.NDArray[np.int64]:
    """Instructions as an array."""
    return np.array(rows, np.int64).reshape(len(rows), env.I_WORDS)
