import numpy as np

from modelc.models import lower
from modelc.program import Builder
from modelc.runtime.profile import report
from tests.models.tiny_llama import tiny_llama

PROGRAM = lower(tiny_llama()).program(Builder(8, 8, 1, 64))


def test_cycles_are_shared_out_by_kind_and_by_layer() -> None:
    cycles = np.zeros(len(PROGRAM.table), np.int64)
    norms = [i for i, row in enumerate(PROGRAM.table) if PROGRAM.opcodes[row[0]] == "rms_norm"]
    cycles[norms[0]], cycles[norms[-1]], cycles[0] = 50, 25, 25  # in layer 0, and outside twice
    lines = [line.split() for line in report(PROGRAM, cycles, 4, 2.0).splitlines()]
    assert "4 steps, 2.000 s" in " ".join(lines[0])
    assert ["rms_norm", "1500.00", "75.0%"] in lines
    assert ["embed.f32", "500.00", "25.0%"] in lines
    assert ["0", "1000.00", "50.0%"] in lines
    assert ["outside", "layers", "1000.00", "50.0%"] in lines
    assert lines.index(["rms_norm", "1500.00", "75.0%"]) < lines.index(["embed.f32", "500.00", "25.0%"])


def test_without_a_step_there_is_nothing_to_share() -> None:
    nothing = np.zeros(len(PROGRAM.table), np.int64)
    assert report(PROGRAM, nothing, 0, 0.0) == "profile: nothing ran"
    assert report(PROGRAM, nothing, 3, 1.0) == "profile: nothing ran"
