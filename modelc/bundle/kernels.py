"""A model's kernels as shared libraries, one for each instruction set."""

from __future__ import annotations

from collections.abc import Sequence

from modelc.bundle.isas import Isa
from modelc.bundle.linker import link
from modelc.bundle.objects import object_files
from modelc.bundle.target import Target
from modelc.kernels.source import Progress


def build_libraries(
    names: Sequence[str],
    isas: Sequence[Isa],
    target: Target,
    debug: bool = False,
    progress: Progress | None = None,
) -> dict[str, bytes]:
    """Shared libraries by instruction set, each with the functions `names` of the catalogue.

    Raises:
        NotFoundError: no linker for the target.
        ModelcError: compiling or linking failed.
    """
    objects = object_files(names, isas, target.triple, debug, progress)
    return {
        isa.name: link(
            {name: objects[isa.name, name] for name in names}, target, f"{isa.name}{target.library_suffix}", debug
        )
        for isa in isas
    }
