"""LoRA adapters of a loaded model: computed beside its weights, swapped between two requests.

The weights stay as they are. An adapter is a second program of the same model, with its products added, on an engine
that shares the first one's keys and values. Requests run on the engine that was in use when they came, so that those
in flight end on the weights they began with; without an adapter everything is as if there were none.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from modelc.errors import BadInputError, BusyError
from modelc.formats.adapter import read_adapter
from modelc.kernels.source import KernelSource, Progress
from modelc.models.lora import Fitted, fit
from modelc.models.registry import Lowered
from modelc.program import Builder
from modelc.runtime.engine import Engine
from modelc.runtime.scheduler import Scheduler

MAX_ALPHA = 1e6
NAMED = 3  # names of skipped tensors in a message


@dataclass(frozen=True, slots=True)
class AdapterReport:
    """What became of adapters.

    Attributes:
        applied: weights that got a pair of matrices.
        skipped: tensors of the files that the model has no use for.
        message: the same for people.
    """

    applied: int
    skipped: int
    message: str


class Adapters:
    """Swaps the adapters of one model. Thread-safe.

    Attributes:
        in_use: the model with the adapters that are in use.

    Args:
        lowered: the model.
        family: its architecture's name.
        builder: makes the builder of a program.
        engine: runs the model without adapters.
        scheduler: owns `engine`.
        objects: where compiled opcodes come from.
    """

    def __init__(
        self,
        lowered: Lowered,
        family: str,
        builder: Callable[[], Builder],
        engine: Engine,
        scheduler: Scheduler,
        objects: KernelSource,
    ) -> None:
        self._lowered = self.in_use = lowered
        self._family = family
        self._builder = builder
        self._engine = engine
        self._scheduler = scheduler
        self._objects = objects
        self._swap = threading.Lock()

    def load(self, adapters: Sequence[tuple[Path, float]], progress: Progress | None = None) -> AdapterReport:
        """Use these adapters together, in place of those in use, for all requests that come from now on.

        Args:
            adapters: Files, each with a factor to the scale that it was trained with.
            progress: Told (done, total, name) about each opcode that has to be compiled.

        Raises:
            NotFoundError, BadFileError, UnsupportedError: A file cannot be used; nothing has changed.
            BadInputError: A factor is out of range; nothing has changed.
        """
        for _, alpha in adapters:
            if not (math.isfinite(alpha) and abs(alpha) <= MAX_ALPHA):
                expected = f"a number from {-MAX_ALPHA:g} to {MAX_ALPHA:g}"
                raise BadInputError("out of range", param="alpha", expected=expected, got=alpha)
        fitted = fit(self._lowered, self._family, [(read_adapter(path), alpha) for path, alpha in adapters])
        with self._swap:
            weights = self._lowered.weights.adapted(fitted.low_rank, fitted.owned)
            adapted = replace(self._lowered, weights=weights)
            engine = self._engine_of(adapted, progress)
            try:
                self._scheduler.use(engine)
            except BusyError:  # the model was closed
                engine.close()
                raise
            self.in_use = adapted
        return AdapterReport(fitted.applied, len(fitted.skipped), _message(fitted))

    def unload(self) -> None:
        """Go back to the model's own weights, for all requests that come from now on."""
        with self._swap:
            self._scheduler.use(self._engine)
            self.in_use = self._lowered

    def _engine_of(self, adapted: Lowered, progress: Progress | None) -> Engine:
        return Engine(
            adapted.program(self._builder()),
            adapted.weights.base,
            self._engine.n_slots,
            n_pages=0,
            objects=self._objects,
            progress=progress,
            lender=self._engine,
            owned=adapted.weights,
        )


def _message(fitted: Fitted) -> str:
    text = f"LoRA loaded: {fitted.applied} weights adapted, {fitted.n_bytes / 1e6:.1f} MB"
    if not fitted.skipped:
        return text
    more = ", …" if len(fitted.skipped) > NAMED else ""
    return f"{text}; {len(fitted.skipped)} tensors skipped: {', '.join(fitted.skipped[:NAMED])}{more}"
