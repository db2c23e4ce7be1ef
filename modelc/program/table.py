"""The table of instructions as the executor reads it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from modelc.kernels.env import I_BARRIER, I_OPCODE, I_WORDS
from modelc.program.allocate import barriers
from modelc.program.program import Buffer, Field, Instruction, View


def table_of(
    instructions: Sequence[Instruction], offsets: dict[Buffer, int]
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """The instructions as int64 (instructions, 16), with their barriers, and the names of the opcodes by number."""
    masks = barriers(instructions, offsets)
    numbers: dict[str, int] = {}
    table = np.zeros((len(instructions), I_WORDS), np.int64)
    for row, instruction, mask in zip(table, instructions, masks, strict=True):
        row[I_OPCODE] = numbers.setdefault(instruction.opcode, len(numbers))
        row[I_BARRIER] = mask
        row[2 : 2 + len(instruction.fields)] = [_resolve(f, offsets) for f in instruction.fields]
    return table, list(numbers)


def _resolve(value: Field, offsets: dict[Buffer, int]) -> int:
    if isinstance(value, View):
        return offsets[value.buffer] + value.start
    return offsets[value] if isinstance(value, Buffer) else value
