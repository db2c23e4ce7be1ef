import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from modelc.errors import BadFileError, ModelcError, UnsupportedError
from modelc.formats import open_model
from modelc.ir import Model
from modelc.models import lower
from modelc.models.pooling import Pooling
from modelc.runtime.encoder import Encoder
from modelc.runtime.options import Options
from tests.runtime.tiny_encoder import BERT, hidden_of


def changed(**metadata: Any) -> Model:
    model = open_model(BERT)
    config = {**model.metadata["config"], **metadata.pop("config", {})}
    return replace(model, metadata={**model.metadata, "config": config, **metadata})


def as_gguf(**keys: Any) -> Model:
    """The checkpoint under GGUF's names and keys."""
    source = open_model(BERT)
    lowered = lower(source)
    c = lowered.config
    metadata = {
        "bert.block_count": c.n_layers,
        "bert.embedding_length": c.dim,
        "bert.attention.head_count": c.n_heads,
        "bert.feed_forward_length": c.ffn_dim,
        "bert.attention.layer_norm_epsilon": c.norm_eps,
    }
    tensors = {name: replace(tensor, name=name) for name, tensor in sorted(lowered.weights._tensors.items())}
    return Model("m", "bert", "gguf", metadata | {f"bert.{key}": value for key, value in keys.items()}, tensors)


def test_a_hugging_face_checkpoint_gives_the_float64_outputs() -> None:
    with Encoder(open_model(BERT), Options(1)) as encoder:
        for case in json.loads((BERT / "expected.json").read_text("utf-8")):
            expected = np.array(case["values"])
            assert np.abs(encoder.hidden(case["ids"])[-len(expected) :] - expected).max() < 2e-4


def test_threads_do_not_change_a_bit() -> None:
    ids = [int(t) for t in np.random.default_rng(3).integers(0, 320, 50)]
    assert len({hidden_of(open_model(BERT), ids, threads).tobytes() for threads in (1, 2, 3)}) == 1


def test_the_same_model_under_gguf_s_names_gives_the_same_states() -> None:
    assert (hidden_of(as_gguf(), [5, 6, 7]) == hidden_of(open_model(BERT), [5, 6, 7])).all()


def test_the_names_may_have_the_prefix_of_a_model_with_a_head() -> None:
    source = open_model(BERT)
    tensors = {f"bert.{name}": replace(tensor, name=f"bert.{name}") for name, tensor in source.tensors.items()}
    prefixed = replace(source, tensors=tensors)
    assert (hidden_of(prefixed, [5, 6, 7]) == hidden_of(source, [5, 6, 7])).all()


@pytest.mark.parametrize(
    ("model", "pooling"),
    [
        (lambda: as_gguf(pooling_type=2), Pooling("cls", normalized=True)),
        (lambda: as_gguf(pooling_type=1), Pooling("mean", normalized=True)),
        (as_gguf, Pooling("mean", normalized=True)),
        (changed, Pooling("mean", normalized=False)),
        (lambda: changed(pooling={"pooling_mode_cls_token": True}), Pooling("cls", normalized=False)),
        (
            lambda: changed(
                pooling={"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True},
                modules=[{"type": f"sentence_transformers.models.{stage}"} for stage in ("Transformer", "Normalize")],
            ),
            Pooling("mean", normalized=True),
        ),
    ],
)
def test_pooling_is_what_the_files_say(model: Any, pooling: Pooling) -> None:
    assert lower(model()).config.pooling == pooling


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (lambda: changed(config={"num_attention_heads": 3}), UnsupportedError, "divisible by 16"),
        (lambda: changed(config={"hidden_act": "swish"}), UnsupportedError, "activation.*swish"),
        (lambda: changed(config={"position_embedding_type": "relative_key"}), UnsupportedError, "relative_key"),
        (lambda: changed(config={"num_hidden_layers": 1}), UnsupportedError, "encoder.layer.1"),
        (lambda: changed(config={"num_hidden_layers": 3}), BadFileError, r"encoder\.layer\.2\.attention"),
        (lambda: changed(config={"intermediate_size": 64}), BadFileError, "wrong shape"),
        (lambda: changed(modules=[{"type": "models.Dense"}]), UnsupportedError, "stage of modules.json.*Dense"),
        (lambda: changed(modules=["Dense"]), BadFileError, "has no type"),
        (lambda: changed(modules=5), BadFileError, "modules.json has another form"),
        (lambda: changed(pooling={"pooling_mode_weightedmean_tokens": True}), UnsupportedError, "weighted mean"),
        (lambda: changed(pooling={"pooling_mode_cls_token": 1}), BadFileError, "true or false"),
        (
            lambda: changed(pooling={"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}),
            UnsupportedError,
            "got cls, mean",
        ),
        (lambda: as_gguf(pooling_type=4), UnsupportedError, "pooling_type.*got 4"),
        (lambda: as_gguf(**{"attention.causal": True}), UnsupportedError, "causal"),
    ],
)
def test_what_cannot_be_run_is_named(model: Any, error: type[ModelcError], message: str) -> None:
    with pytest.raises(error, match=message):
        lower(model())
