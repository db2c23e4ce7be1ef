"""Hugging Face models as GGUF has them: written, read again, and compared with the outputs of the source."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from modelc.dtypes import DTYPES
from modelc.errors import UnsupportedError
from modelc.formats import gguf, open_model
from modelc.formats.gguf_writer import write
from modelc.ir import Model, Tensor
from modelc.models.to_gguf import as_gguf
from modelc.packing import pack
from modelc.quantizing import Quantization
from tests.models.checkpoints import HF_CASES, checkpoint, largest_difference
from tests.models.tiny_llama import tiny_llama
from tests.runtime.tiny_engine import engine_of, logits_of


def rewritten(model: Model, path: Path) -> Model:
    write(as_gguf(model), path)
    return gguf.read(path)


@pytest.mark.parametrize(
    "name",
    [
        "gemma3-tiny",
        "gpt2-tiny",
        "llama-tiny-gqa-untied",
        "llama-tiny-rope-linear",
        "llama-tiny-rope-yarn",
        "mistral-tiny",
        "phi3-tiny",
        "qwen2-tiny",
    ],
)
def test_the_written_model_gives_the_float64_outputs_of_the_checkpoint(name: str, tmp_path: Path) -> None:
    assert largest_difference(rewritten(checkpoint(name), tmp_path / "m.gguf"), name) < 2e-4


@pytest.mark.parametrize(
    "model",
    [
        checkpoint("phi3-tiny-longrope"),
        checkpoint("gemma3-tiny-global", query_pre_attn_scalar=16),
        checkpoint("qwen3-tiny", layer_types=["sliding_attention"] * 2),
        checkpoint(
            "llama-tiny-gqa-untied",
            rope_parameters={
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64,
                "rope_theta": 1e4,
            },
        ),
    ],
    ids=["longrope", "global layers", "q and k norms", "llama3 scaling"],
)
def test_the_written_model_has_the_logits_of_the_source(model: Model, tmp_path: Path) -> None:
    ids = [int(t) for t in np.random.default_rng(2).integers(3, 300, 90)]
    results = []
    for each in (model, rewritten(model, tmp_path / "m.gguf")):
        with engine_of(each, kv="f32") as engine:
            results.append(logits_of(engine, ids, [90]))
    assert results[0].std() > 0.1
    assert np.abs(results[0] - results[1]).max() < 2e-5


def test_a_quantized_checkpoint_stays_quantized(tmp_path: Path) -> None:
    packed = pack(HF_CASES / "llama-tiny-gqa-untied", tmp_path / "q.modelc", quantization=Quantization("q8_0"))
    source = open_model(packed)
    model = rewritten(source, tmp_path / "m.gguf")
    assert model.tensors["blk.0.attn_q.weight"].dtype.name == "q8_0"
    assert model.metadata["general.quantization_version"] == 2
    ids, results = [5, 6, 7, 8], []
    for each in (source, model):
        with engine_of(each, kv="f32", activation="a16") as engine:
            results.append(logits_of(engine, ids, [4]))
    assert np.abs(results[0] - results[1]).max() < 2e-4


def test_vectors_and_position_tables_become_float32(tmp_path: Path) -> None:
    source = checkpoint("gpt2-tiny")
    halves = {
        name: Tensor(name, DTYPES["f16"], t.shape, t.stored.view(np.float32).astype(np.float16).view(np.uint8))
        for name, t in source.tensors.items()
    }
    model = rewritten(replace(source, tensors=halves), tmp_path / "m.gguf")
    types = {name: tensor.dtype.name for name, tensor in model.tensors.items()}
    assert types["position_embd.weight"] == types["output_norm.bias"] == "f32"
    assert types["token_embd.weight"] == types["blk.0.ffn_up.weight"] == "f16"
    turned, plain = model.tensors["blk.0.ffn_up.weight"], halves["transformer.h.0.mlp.c_fc.weight"]
    assert turned.shape == plain.shape[::-1]
    values = plain.stored.view(np.float16).reshape(plain.shape)
    assert (turned.stored.view(np.float16).reshape(turned.shape) == values.T).all()


def test_a_gguf_model_is_left_as_it_is() -> None:
    model = tiny_llama()
    assert as_gguf(model) is model


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (checkpoint("qwen3-tiny"), r"windows of some layers.*\(0, 16\)"),
        (checkpoint("gemma3-tiny-global"), "query_pre_attn_scalar.*24.*16"),
        (checkpoint("gpt2-tiny", activation_function="relu"), "activation.*relu"),
        (
            checkpoint(
                "llama-tiny-rope-yarn",
                rope_parameters={"rope_type": "yarn", "factor": 4.0, "beta_fast": 16.0, "rope_theta": 1e4},
            ),
            "YaRN",
        ),
        (replace(checkpoint("gpt2-tiny"), architecture="gpt3"), "architecture.*gpt3"),
    ],
)
def test_what_gguf_has_no_key_for_is_an_error_that_names_it(model: Model, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        as_gguf(model)


def test_a_layer_s_tensor_that_is_not_known_is_not_left_out() -> None:
    source = checkpoint("mistral-tiny")
    extra = replace(source.tensors["model.norm.weight"], name="model.layers.0.self_attn.sinks")
    tensors = dict(sorted({**source.tensors, extra.name: extra}.items()))
    with pytest.raises(UnsupportedError, match="sinks"):
        as_gguf(replace(source, tensors=tensors))
