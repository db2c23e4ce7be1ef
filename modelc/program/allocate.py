"""Where buffers lie and where threads must meet: both follow from the accesses that instructions declare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from modelc.program.program import ALL, Access, Buffer, Instruction


@dataclass(frozen=True, slots=True)
class Placement:
    """Offsets of buffers, and the size of each space."""

    offsets: dict[Buffer, int]
    floats: int
    quant_bytes: int


def place(instructions: Sequence[Instruction], kept: Sequence[Buffer], given: Sequence[Buffer] = ()) -> Placement:
    """Give each buffer an offset; buffers whose uses do not overlap in time share memory.

    `kept` are live to the end, `given`, which are filled from outside, from the beginning.

    Private and shared buffers come from separate pools: a thread may run ahead in its private rows while another
    still reads a shared buffer, and memory common to both would cost a barrier.
    """
    first: dict[Buffer, int] = dict.fromkeys(given, 0)
    last: dict[Buffer, int] = {}
    for i, instruction in enumerate(instructions):
        for access in instruction.accesses:
            if access.buffer is not None:
                first.setdefault(access.buffer, i)
                last[access.buffer] = i
    last |= dict.fromkeys(kept, len(instructions))
    pools = {(space, private): _Pool() for space in ("floats", "quants") for private in (False, True)}
    where: dict[Buffer, int] = {}
    dying: dict[int, list[Buffer]] = {}
    for buffer, i in last.items():
        dying.setdefault(i, []).append(buffer)
    born: dict[int, list[Buffer]] = {}
    for buffer, i in first.items():
        born.setdefault(i, []).append(buffer)
    for i in range(len(instructions)):
        for buffer in born.get(i, ()):
            where[buffer] = pools[buffer.space, buffer.private].take(buffer)
        for buffer in dying.get(i, ()):
            pools[buffer.space, buffer.private].give(buffer, where[buffer])
    shift = {key: pools[key[0], False].size if key[1] else 0 for key in pools}
    offsets = {b: at + shift[b.space, b.private] for b, at in where.items()}
    sizes = {space: pools[space, False].size + pools[space, True].size for space in ("floats", "quants")}
    return Placement(offsets, sizes["floats"], sizes["quants"])


class _Pool:
    """Memory by exact shape: a dead buffer's place goes to the next of the same shape, so that padding stays zero."""

    def __init__(self) -> None:
        self.size = 0
        self._free: dict[tuple[int, int, int], list[int]] = {}

    def take(self, buffer: Buffer) -> int:
        free = self._free.get((buffer.rows, buffer.stride, buffer.cols))
        if free:
            return free.pop()
        at = self.size
        self.size += (buffer.size + 63) // 64 * 64
        return at

    def give(self, buffer: Buffer, at: int) -> None:
        self._free.setdefault((buffer.rows, buffer.stride, buffer.cols), []).append(at)


def barriers(instructions: Sequence[Instruction], offsets: dict[Buffer, int]) -> list[int]:
    """For each instruction, bit 0: a barrier before it in one-row batches, bit 1: in larger ones."""
    masks = [0] * len(instructions)
    for mode in (0, 1):
        live: list[Access] = []
        for i, instruction in enumerate(instructions):
            if any(_conflict(old, new, mode, offsets) for new in instruction.accesses for old in live):
                masks[i] |= 1 << mode
                live.clear()
            live.extend(instruction.accesses)
    return masks


def _conflict(a: Access, b: Access, mode: int, offsets: dict[Buffer, int]) -> bool:
    """Whether threads that do not wait between accesses a and b could see each other's half-done work."""
    if not (a.writes or b.writes) or not _same_place(a, b, offsets):
        return False
    if a.stop <= b.start or b.stop <= a.start:
        return False
    division = a.division(mode)
    return division == ALL or division != b.division(mode)


def _same_place(a: Access, b: Access, offsets: dict[Buffer, int]) -> bool:
    if a.buffer is None or b.buffer is None:
        return a.buffer is b.buffer
    return a.buffer.space == b.buffer.space and offsets[a.buffer] == offsets[b.buffer]
