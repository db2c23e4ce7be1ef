"""Finds races in a list of instructions, by another way than the one that places barriers: by pairs and by memory."""

from collections.abc import Sequence
from itertools import combinations, product

from modelc.program.allocate import Placement, place
from modelc.program.builder import Builder
from modelc.program.program import ALL, Access, Buffer, Instruction


def races(
    instructions: Sequence[Instruction], offsets: dict[Buffer, int], masks: Sequence[int], mode: int
) -> list[tuple[int, int]]:
    """Pairs of instructions without a barrier between them that a fast and a slow thread could get wrong."""
    epochs, epoch = [], 0
    for mask in masks:
        epoch += mask >> mode & 1
        epochs.append(epoch)
    return [
        (i, j)
        for i, j in combinations(range(len(instructions)), 2)
        if epochs[i] == epochs[j]
        and any(_race(a, b, offsets, mode) for a, b in product(instructions[i].accesses, instructions[j].accesses))
    ]


def _race(a: Access, b: Access, offsets: dict[Buffer, int], mode: int) -> bool:
    if not (a.writes or b.writes):
        return False
    if a.buffer is None or b.buffer is None:
        overlap = a.buffer is b.buffer and a.start < b.stop and b.start < a.stop
    elif same_columns(a.buffer, b.buffer, offsets):
        overlap = a.start < b.stop and b.start < a.stop
    else:
        return overlapping(a.buffer, b.buffer, offsets)  # rows lie differently: any thread may meet any other
    return overlap and (a.division(mode) != b.division(mode) or a.division(mode) == ALL)


def same_columns(a: Buffer, b: Buffer, offsets: dict[Buffer, int]) -> bool:
    """Whether a row and column of one buffer is the same memory in the other."""
    return a.space == b.space and offsets[a] == offsets[b] and a.stride == b.stride


def overlapping(a: Buffer, b: Buffer, offsets: dict[Buffer, int]) -> bool:
    """Whether two buffers have memory in common."""
    return a.space == b.space and offsets[a] < offsets[b] + b.size and offsets[b] < offsets[a] + a.size


def instructions_of(builder: Builder) -> tuple[list[Instruction], Placement]:
    """What a finished builder emitted, and where its buffers are; the last instruction writes the logits."""
    instructions = builder._instructions
    logits = next(a.buffer for a in instructions[-1].accesses if a.writes and a.buffer is not None)
    return instructions, place(instructions, [logits])


def lifetimes(instructions: Sequence[Instruction]) -> dict[Buffer, tuple[int, int]]:
    """First and last instruction that touches each buffer."""
    spans: dict[Buffer, tuple[int, int]] = {}
    for i, instruction in enumerate(instructions):
        for access in instruction.accesses:
            if access.buffer is not None:
                spans[access.buffer] = (spans.get(access.buffer, (i, i))[0], i)
    return spans
