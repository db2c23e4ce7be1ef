"""MLPs built in memory."""

from collections.abc import Mapping

import numpy as np

from modelc.dtypes import DTYPES
from modelc.ir import Model, Tensor


def mlp_of(shapes: Mapping[str, tuple[int, ...]], seed: int = 1) -> Model:
    """An MLP of these tensors, float32 with random values."""
    rng = np.random.default_rng(seed)
    tensors = {}
    for name, shape in sorted(shapes.items()):
        values = rng.standard_normal(shape).astype(np.float32)
        tensors[name] = Tensor(name, DTYPES["f32"], shape, values.reshape(-1).view(np.uint8))
    return Model("tiny", "mlp", "safetensors", {}, tensors)
