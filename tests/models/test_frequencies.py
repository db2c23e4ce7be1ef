from decimal import Decimal, localcontext

import numpy as np
import pytest

from modelc.models.frequencies import rope_frequencies


def test_frequencies_by_hand() -> None:
    assert rope_frequencies(8, 10000.0).tolist() == [1.0, 0.1, 0.01, 0.001]
    assert rope_frequencies(4, 4.0).tolist() == [1.0, 0.5]
    assert (rope_frequencies(16, 1.0) == 1).all()


@pytest.mark.parametrize(("head_dim", "theta"), [(64, 100000.0), (80, 10000.0), (128, 500000.0), (128, 8e6)])
def test_frequencies_are_correctly_rounded(head_dim: int, theta: float) -> None:
    frequencies = rope_frequencies(head_dim, theta)
    assert frequencies.dtype == np.float64
    assert frequencies.shape == (head_dim // 2,)
    with localcontext() as context:
        context.prec = 90
        for i, frequency in enumerate(frequencies.tolist()):
            # frequency^head_dim is theta^(-2i): the true value lies within half a step of the float on each side.
            power = Decimal(theta) ** (-2 * i)
            below, above = (
                (Decimal(frequency) + Decimal(float(np.nextafter(frequency, side)))) / 2 for side in (0.0, 2.0)
            )
            assert below**head_dim <= power <= above**head_dim
