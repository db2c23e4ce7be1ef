"""Where the time of a Program goes: by kind of instruction and by layer."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import numpy.typing as npt

from modelc.program import Program


def report(program: Program, cycles: npt.NDArray[np.int64], steps: int, seconds: float) -> str:
    """A table for people.

    Args:
        program: what ran.
        cycles: int64 (instructions,), spent in each and in the barrier before it, by the first thread.
        steps: how many batches ran.
        seconds: what they took together.
    """
    total = int(cycles.sum())
    if not steps or not total:
        return "profile: nothing ran"
    kinds: dict[str, int] = defaultdict(int)
    layers: dict[int, int] = defaultdict(int)
    for spent, number, layer in zip(cycles.tolist(), program.table[:, 0].tolist(), program.layers, strict=True):
        kinds[program.opcodes[number]] += spent
        layers[layer] += spent
    lines = [f"profile: {steps} steps, {seconds:.3f} s in the engine", f"  {'instruction':<28}{'ms':>10}{'share':>8}"]
    for name, spent in sorted(kinds.items(), key=lambda item: -item[1]):
        lines.append(f"  {name:<28}{1e3 * seconds * spent / total:>10.2f}{spent / total:>8.1%}")
    lines.append(f"  {'layer':<28}{'ms':>10}{'share':>8}")
    for layer, spent in sorted(layers.items()):
        title = "outside layers" if layer < 0 else str(layer)
        lines.append(f"  {title:<28}{1e3 * seconds * spent / total:>10.2f}{spent / total:>8.1%}")
    return "\n".join(lines)
