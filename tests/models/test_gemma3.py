from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from modelc.errors import BadFileError, UnsupportedError
from modelc.ir import Model
from modelc.models import lower
from modelc.models.gemma3 import Config
from modelc.program import Builder
from tests.models.checkpoints import checkpoint, largest_difference
from tests.runtime.tiny_engine import engine_of, logits_of


@pytest.mark.parametrize("name", ["gemma3-tiny", "gemma3-tiny-global"])
def test_a_hugging_face_checkpoint_gives_the_float64_outputs(name: str) -> None:
    assert largest_difference(checkpoint(name), name) < 2e-4


def changed(**config: object) -> Model:
    """The checkpoint with a layer that sees everything, with other values in its configuration."""
    return checkpoint("gemma3-tiny-global", **config)


def test_five_of_six_layers_have_a_window() -> None:
    expected = (16, 16, 16, 16, 16, 0)
    assert lower(changed()).config.windows == expected
    assert lower(changed(layer_types=None)).config.windows == expected
    assert lower(changed(layer_types=None, _sliding_window_pattern=None, sliding_window_pattern=2)).config.windows == (
        (16, 0) * 3
    )


def test_older_configurations_name_both_bases_at_the_top() -> None:
    scaling = {"rope_type": "linear", "factor": 8.0}
    older = changed(rope_parameters=None, rope_theta=1e6, rope_local_base_freq=1e4, rope_scaling=scaling)
    assert lower(older).config == lower(changed()).config


@pytest.mark.parametrize("kv", ["f32", "f16"])
def test_after_a_shift_each_layer_has_the_keys_of_the_new_positions_in_its_own_base(kv: str) -> None:
    model = changed()
    for name, tensor in model.tensors.items():  # nothing is added to the embedding: keys depend on token and position
        if "o_proj" in name or "down_proj" in name:
            model.tensors[name] = replace(tensor, stored=np.zeros_like(tensor.stored))
    ids = [int(t) for t in np.random.default_rng(4).integers(3, 320, 150)]
    anchor, dropped = 5, 70
    with engine_of(model, kv=kv) as engine:
        layers = lower(model).program(Builder(8, 8, 1, 256, kv=kv)).kv_layers
        assert len({layer.frequencies for layer in layers}) == 2
        logits_of(engine, ids, slot=0)
        logits_of(engine, ids[:anchor] + ids[anchor + dropped :], slot=1)
        pages = engine.pages[0].tolist()
        engine.shift(pages, pages, anchor, dropped, len(ids))
        dtype, size = (np.float32, 4) if kv == "f32" else (np.float16, 2)
        memory = engine._kv.reshape(-1, engine.program.page_bytes)
        for layer in layers:
            end = layer.at + layer.heads * 2 * 64 * layer.head_dim * size  # keys and values
            shifted, fresh = (
                memory[engine.pages[slot][0], layer.at : end].view(dtype).astype(np.float64) for slot in (0, 1)
            )
            assert np.abs(shifted).max() > 0.5
            assert np.abs(shifted - fresh).max() < (1e-4 if kv == "f32" else 2e-2)


def gguf_keys(c: Config) -> dict[str, Any]:
    return {
        "gemma3.block_count": c.n_layers,
        "gemma3.embedding_length": c.dim,
        "gemma3.attention.head_count": c.n_heads,
        "gemma3.attention.head_count_kv": c.n_kv_heads,
        "gemma3.attention.key_length": c.head_dim,
        "gemma3.feed_forward_length": c.ffn_dim,
        "gemma3.context_length": c.n_ctx,
        "gemma3.attention.layer_norm_rms_epsilon": c.norm_eps,
        "gemma3.attention.sliding_window": 16,
        "gemma3.rope.freq_base": 1e6,
        "gemma3.rope.scaling.type": "linear",
        "gemma3.rope.scaling.factor": 8.0,
        "gemma3.rope.scaling.original_context_length": 256,
    }


def test_gguf_s_keys_leave_out_the_pattern_and_the_local_base() -> None:
    source = changed(query_pre_attn_scalar=16)
    c = lower(source).config
    tensors = {"token_embd.weight": source.tensors["model.embed_tokens.weight"]}
    model = Model("m", "gemma3", "gguf", gguf_keys(c), tensors)
    assert Config.from_gguf(model) == c


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        ({"final_logit_softcapping": 30.0}, UnsupportedError, "final_logit_softcapping"),
        ({"attn_logit_softcapping": 50.0}, UnsupportedError, "attn_logit_softcapping"),
        ({"hidden_activation": "gelu"}, UnsupportedError, "activation"),
        ({"use_bidirectional_attention": True}, UnsupportedError, "use_bidirectional_attention"),
        ({"text_config": {"hidden_size": 32}}, UnsupportedError, "images"),
        ({"num_key_value_heads": 3}, BadFileError, "kv heads"),
        ({"head_dim": 8}, UnsupportedError, "divisible by 16"),
        (
            {"rope_parameters": {"rope_type": "longrope", "short_factor": [1.0], "long_factor": [1.0]}},
            UnsupportedError,
            "longrope",
        ),
        ({"layer_types": ["full_attention"]}, BadFileError, "layer_types"),
    ],
)
def test_what_cannot_be_served_is_an_error_that_names_it(
    config: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        lower(changed(**config))
