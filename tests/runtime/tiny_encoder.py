"""A small encoder with random weights, whose tokens are bytes."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from modelc.ir import Model
from modelc.runtime.encoder import Encoder
from modelc.runtime.loaded import F32
from modelc.runtime.options import Options

BERT = Path(__file__).parents[1] / "data" / "hf" / "bert-tiny"


def hidden_of(model: Model, ids: Sequence[int], threads: int = 1) -> F32:
    """Last hidden states of one text."""
    with Encoder(model, Options(threads)) as encoder:
        return encoder.hidden(ids)


def cosine(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """The cosine of the angle between two vectors."""
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))
