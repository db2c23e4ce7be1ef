"""RoPE frequencies, computed in decimal arithmetic: libm's pow differs between systems in the last bit."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import numpy.typing as npt


def rope_frequencies(head_dim: int, theta: float) -> npt.NDArray[np.float64]:
    """theta^(-2i / head_dim) for i < head_dim / 2, float64, correctly rounded."""
    with localcontext() as context:
        context.prec = 40
        base = Decimal(theta)
        return np.array([float(base ** (Decimal(-2 * i) / Decimal(head_dim))) for i in range(head_dim // 2)])
