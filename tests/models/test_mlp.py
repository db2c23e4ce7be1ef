from collections.abc import Mapping

import numpy as np
import pytest

from modelc.errors import BadFileError
from modelc.models import lower
from modelc.program import Builder
from tests.runtime.tiny_mlp import mlp_of


@pytest.mark.parametrize(
    ("shapes", "names", "sizes"),
    [
        ({"layer0.weight": (4, 3), "layer1.weight": (2, 4)}, ("layer0.", "layer1."), (3, 4, 2)),
        ({"layer1.weight": (4, 3), "layer2.weight": (2, 4)}, ("layer1.", "layer2."), (3, 4, 2)),
        ({f"layer{i}.weight": (1, 1) for i in range(12)}, tuple(f"layer{i}." for i in range(12)), (1,) * 13),
        ({"weight": (5, 7), "bias": (5,)}, ("",), (7, 5)),
    ],
)
def test_layers_are_in_the_order_of_their_numbers(
    shapes: Mapping[str, tuple[int, ...]], names: tuple[str, ...], sizes: tuple[int, ...]
) -> None:
    config = lower(mlp_of(shapes)).config
    assert (config.names, config.sizes) == (names, sizes)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"layer0.weight": (4, 3), "layer2.weight": (2, 4)}, "tensor missing: tensor 'layer1.weight'"),
        ({"layer0.weight": (4, 3), "layer1.weight": (2, 5)}, r"'layer1.weight'.*got \(2, 5\), expected \(2, 4\)"),
        ({"layer0.weight": (4,)}, r"'layer0.weight': got \(4,\), expected a matrix"),
        ({"bias": (4,)}, "tensor 'weight': expected a matrix"),
        ({"layer0.weight": (4, 3), "layer0.bias": (3,)}, r"wrong shape: tensor 'layer0.bias'"),
    ],
)
def test_layers_that_do_not_fit_are_named(shapes: Mapping[str, tuple[int, ...]], message: str) -> None:
    with pytest.raises(BadFileError, match=message):
        lower(mlp_of(shapes))


def test_a_program_needs_nothing_but_products_and_biases() -> None:
    model = mlp_of({"layer0.weight": (40, 3), "layer0.bias": (40,), "layer1.weight": (2, 40)})
    program = lower(model).program(Builder(4, 4, 1, 1))
    assert program.opcodes == ["matmul.f32", "bias.relu"]
    assert np.count_nonzero(program.table[:, 0] == 0) == 2
