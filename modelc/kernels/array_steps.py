"""A table of instructions that is chosen anew for each run, as one opcode.

A team of threads belongs to one table; graphs of arrays have many (one for each combination of input shapes). The
team's table has this one instruction, and the environment says which table it walks.
"""

from __future__ import annotations

from typing import Any

from modelc.kernels.env import STEP_COUNT, STEP_ENVIRONMENT, STEP_TABLE
from modelc.kernels.executor import execute
from modelc.kernels.jit import kernel


def make_array_steps() -> Any:
    """Opcode: runs the STEP_COUNT instructions at STEP_TABLE."""

    @kernel
    def array_steps(I, E, tid, nth):
        execute(E[STEP_TABLE], E[STEP_COUNT], E[STEP_ENVIRONMENT], tid, nth, 0)

    return array_steps
