import pytest

from modelc.errors import UnsupportedError
from modelc.ir import Model
from modelc.models import lower
from modelc.models.registry import ARCHITECTURES
from modelc.program import Builder
from tests.models.tiny_llama import tiny_llama


def test_an_unknown_architecture_is_named_with_those_that_are_known() -> None:
    source = tiny_llama()
    with pytest.raises(UnsupportedError, match=r"architecture.*llamm.*llama"):
        lower(Model("m", "llamm", "gguf", source.metadata, source.tensors))


def test_every_architecture_names_its_tensors_and_lowers_them() -> None:
    decoders = [name for name, each in ARCHITECTURES.items() if each.kind == "decoder"]
    assert sorted(decoders) == ["gemma3", "gpt2", "llama", "mistral", "phi3", "qwen2", "qwen3", "smollm"]
    lowered = lower(tiny_llama(tied=False))
    program = lowered.program(Builder(8, 8, 2, 64))
    assert program.vocab_size == lowered.config.vocab_size == 50
    assert "output.weight" in lowered.weights
