import pytest

from modelc.kernels.catalogue import FACTORIES, FUNCTIONS, function
from modelc.kernels.executor import OPCODE_ARGS


@pytest.mark.parametrize(
    "name",
    [
        "attention.64.3.f16",
        "attention_scores.64.3.f16",
        "bias.relu",
        "embed.q4_1",
        "kv_write.64.f16",
        "matmul.f32",
        "matmul.q4_1.a16",
        "quantize.a8",
        "rms_norm",
        "rope.halves.64",
        "rope_angles.pairs",
        "swiglu",
    ],
)
def test_an_opcode_s_name_tells_its_variant(name: str) -> None:
    dispatcher, arguments = function(name)
    assert arguments == OPCODE_ARGS
    assert dispatcher.py_func.__module__.startswith("modelc.kernels.")


def test_names_in_the_catalogue_are_unique() -> None:
    assert not set(FACTORIES) & set(FUNCTIONS)


def test_an_unknown_name_or_variant_is_an_error() -> None:
    for name in ("matmull.q4_1.a8", "matmul.q9_9.a8", "quantize.a4", "embed.x", "bias.x"):
        with pytest.raises(KeyError):
            function(name)
