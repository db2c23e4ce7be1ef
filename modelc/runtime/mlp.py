"""A loaded MLP: vectors in, vectors out, whole batches in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from modelc.errors import BadInputError
from modelc.ir import Model
from modelc.kernels.source import Progress
from modelc.models import lower
from modelc.runtime.forward import Forward, ForwardModel
from modelc.runtime.loaded import F32
from modelc.runtime.options import Options
from modelc.runtime.vectors import as_vectors

MAX_ROWS = 256  # of a pass


class Mlp(ForwardModel):
    """An MLP.

    Attributes:
        n_inputs: numbers of a vector that goes in.
        n_outputs: numbers of one that comes out.
    """

    kind = "an MLP"
    abilities = ("infer", "profile")

    def __init__(self, model: Model, options: Options, progress: Progress | None = None) -> None:
        lowered = lower(model)
        super().__init__(model, options.threads)
        self.n_inputs, *_, self.n_outputs = lowered.config.sizes
        self._forward = Forward(lowered, options, MAX_ROWS, 1, progress=progress)

    def infer(self, values: Any) -> F32:
        """Outputs, float32: (n_outputs,) for one vector, (n, n_outputs) for n of them.

        Args:
            values: numbers, (n_inputs,) or (n, n_inputs).

        Raises:
            BadInputError: another length, or something that is no number.
        """
        vectors = as_vectors(values, length=self.n_inputs)
        length = vectors.shape[-1]
        if length != self.n_inputs:
            raise BadInputError(
                "wrong length", param="input", expected=f"{self.n_inputs} numbers", got=f"{length} numbers"
            )
        alone = vectors.ndim == 1
        if alone:
            vectors = vectors[None]
        batches = [self._forward.of_vectors(vectors[i : i + MAX_ROWS]) for i in range(0, len(vectors), MAX_ROWS)]
        outputs: F32 = batches[0] if len(batches) == 1 else np.concatenate(batches)
        return outputs[0] if alone else outputs

    def example_inputs(self, n_inputs: int) -> F32:
        """Numbers from -1 to 1, (n_inputs, length of a vector)."""
        return np.linspace(-1, 1, n_inputs * self.n_inputs, dtype=np.float32).reshape(n_inputs, self.n_inputs)
