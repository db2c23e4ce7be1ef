"""GGUF models as Hugging Face's checkpoints have them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from modelc.dtypes import DTYPES
from modelc.exporting import export
from modelc.formats import open_model
from modelc.ir import Model, Tensor
from modelc.models import lower
from modelc.models.to_gguf import as_gguf
from modelc.models.to_hugging_face import as_hugging_face
from tests.models.checkpoints import HF_CASES, checkpoint, largest_difference
from tests.models.tiny_llama import tiny_llama
from tests.runtime.tiny_engine import engine_of, logits_of

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
    "rope_theta": 5e5,
}


def read_from_gguf(model: Model) -> Model:
    """What a GGUF file of the model says, without what stood in its configuration."""
    made = as_gguf(model)
    return replace(made, source_format="gguf", metadata={k: v for k, v in made.metadata.items() if k != "config"})


@pytest.mark.parametrize(
    "model",
    [
        *(
            checkpoint(name)
            for name in (
                "gemma3-tiny",
                "gpt2-tiny",
                "llama-tiny-gqa-untied",
                "llama-tiny-rope-linear",
                "llama-tiny-rope-yarn",
                "mistral-tiny",
                "phi3-tiny",
                "phi3-tiny-longrope",
                "qwen2-tiny",
            )
        ),
        checkpoint("gemma3-tiny-global", query_pre_attn_scalar=16),
        checkpoint("llama-tiny-gqa-untied", rope_parameters=LLAMA3),
    ],
    ids=lambda model: model.name,
)
def test_there_and_back_the_checkpoint_is_the_same(model: Model) -> None:
    back = as_hugging_face(read_from_gguf(model))
    assert set(back.tensors) == set(model.tensors)
    for name, tensor in model.tensors.items():
        values, expected = (t.tensors[name].stored.view(np.float32) for t in (back, model))
        assert back.tensors[name].shape == tensor.shape
        assert np.allclose(values, expected, rtol=0, atol=1e-7)
    ids = [int(t) for t in np.random.default_rng(2).integers(3, 300, 70)]
    logits = []
    for each in (model, replace(back, architecture=str(back.metadata["config"]["model_type"]).removesuffix("_text"))):
        with engine_of(each, kv="f32") as engine:
            logits.append(logits_of(engine, ids, [70]))
    assert np.abs(logits[0] - logits[1]).max() < 2e-5


def test_an_exported_file_is_a_checkpoint_of_its_own(tmp_path: Path) -> None:
    gguf = export(HF_CASES / "mistral-tiny", tmp_path / "m.gguf")
    model = open_model(export(gguf, tmp_path / "m.safetensors"))
    assert model.architecture == "mistral"
    assert "model.layers.0.self_attn.q_proj.weight" in model.tensors
    assert lower(model).config.windows == (16, 16)
    assert largest_difference(model, "mistral-tiny") < 2e-4


def test_a_tokenizer_s_keys_come_along_and_back() -> None:
    keys = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.bos_token_id": 3, "tokenizer.ggml.eos_token_id": 5}
    made = as_hugging_face(tiny_llama(metadata=keys))
    assert made.metadata["config"]["bos_token_id"] == 3
    assert made.metadata["config"]["eos_token_id"] == 5
    assert as_gguf(made).metadata.items() >= keys.items()


def test_quantized_heads_are_ordered_row_by_row() -> None:
    model = tiny_llama("q8_0")
    back = as_gguf(as_hugging_face(model))
    for name, tensor in model.tensors.items():
        assert back.tensors[name].stored.tobytes() == tensor.stored.tobytes()


def test_what_no_table_names_stays() -> None:
    model = tiny_llama()
    draft = Tensor("draft.fc1.bias", DTYPES["f32"], (4,), np.zeros(4, np.float32).view(np.uint8))
    odd = Tensor("rope_freqs.weight", DTYPES["f32"], (8,), np.arange(1, 9, dtype=np.float32).view(np.uint8))
    tensors = dict(sorted({**model.tensors, draft.name: draft, odd.name: odd}.items()))
    assert {draft.name, odd.name} <= set(as_hugging_face(replace(model, tensors=tensors)).tensors)


def test_a_model_that_cannot_be_run_keeps_its_names() -> None:
    unknown, incomplete = replace(tiny_llama(), architecture="rwkv"), tiny_llama(metadata={"llama.expert_count": 8})
    assert as_hugging_face(unknown) is unknown
    assert as_hugging_face(incomplete) is incomplete
    source = checkpoint("gpt2-tiny")
    assert as_hugging_face(source) is source
