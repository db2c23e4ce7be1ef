import json
from pathlib import Path

import numpy as np
import pytest

from modelc.errors import BadFileError, UnsupportedError
from modelc.formats import open_model
from modelc.ir import Model
from modelc.models import lower
from modelc.models.gpt2 import HF_NAMES, transposed
from tests.runtime.tiny_engine import engine_of, logits_of

FOLDER = Path(__file__).parents[1] / "data" / "hf" / "gpt2-tiny"


def changed(**config: object) -> Model:
    model = open_model(FOLDER)
    metadata = {**model.metadata, "config": {**model.metadata["config"], **config}}
    return Model(model.name, "gpt2", model.source_format, metadata, model.tensors)


def test_a_hugging_face_checkpoint_gives_the_float64_outputs() -> None:
    for case in json.loads((FOLDER / "expected.json").read_text("utf-8")):
        with engine_of(open_model(FOLDER), kv="f32") as engine:
            logits = logits_of(engine, case["ids"], [len(case["ids"])])
        expected = np.array(case["values"])
        assert np.abs(logits[-len(expected) :] - expected).max() < 2e-4


def test_threads_and_cuts_do_not_change_a_bit() -> None:
    ids = [int(t) for t in np.random.default_rng(3).integers(0, 320, 70)]
    bits = set()
    for threads in (1, 2, 3):
        for cuts in ([70], [1] * 70, [9, 40, 21]):
            with engine_of(open_model(FOLDER), threads) as engine:
                bits.add(logits_of(engine, ids, cuts).tobytes())
    assert len(bits) == 1


def test_the_same_model_under_gguf_s_names_gives_the_same_logits() -> None:
    source = open_model(FOLDER)
    lowered = lower(source)
    c = lowered.config
    metadata = {
        "gpt2.block_count": c.n_layers,
        "gpt2.embedding_length": c.dim,
        "gpt2.attention.head_count": c.n_heads,
        "gpt2.feed_forward_length": c.ffn_dim,
        "gpt2.attention.layer_norm_epsilon": c.norm_eps,
    }
    tensors = dict(sorted(lowered.weights._tensors.items()))
    ids = [5, 6, 7]
    results = []
    for model in (source, Model("m", "gpt2", "gguf", metadata, tensors)):
        with engine_of(model) as engine:
            results.append(logits_of(engine, ids, [3]))
    assert (results[0] == results[1]).all()
    assert transposed(c, "blk.0.attn_qkv.weight")
    assert not transposed(c, "token_embd.weight")
    assert set(HF_NAMES) >= {"attn_qkv", "ffn_up"}


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        ({"n_head": 3}, UnsupportedError, "divisible by 16"),
        ({"activation_function": "swish"}, UnsupportedError, "activation.*swish"),
        ({"scale_attn_by_inverse_layer_idx": True}, UnsupportedError, "inverse_layer_idx"),
        ({"n_layer": 0}, BadFileError, "n_layer"),
        ({"n_inner": 100}, BadFileError, "c_fc.*wrong|wrong.*c_fc"),
    ],
)
def test_what_cannot_be_served_is_an_error_that_names_it(config: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        lower(changed(**config))
