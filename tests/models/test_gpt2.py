from dataclasses import replace

import numpy as np
import pytest

from modelc.errors import BadFileError, UnsupportedError
from modelc.ir import Model
from modelc.models import lower
from tests.models.checkpoints import checkpoint, largest_difference
from tests.runtime.tiny_engine import engine_of, logits_of

NAME = "gpt2-tiny"


def test_a_hugging_face_checkpoint_gives_the_float64_outputs() -> None:
    assert largest_difference(checkpoint(NAME), NAME) < 2e-4


def test_threads_and_cuts_do_not_change_a_bit() -> None:
    ids = [int(t) for t in np.random.default_rng(3).integers(0, 320, 70)]
    bits = set()
    for threads in (1, 2, 3):
        for cuts in ([70], [1] * 70, [9, 40, 21]):
            with engine_of(checkpoint(NAME), threads) as engine:
                bits.add(logits_of(engine, ids, cuts).tobytes())
    assert len(bits) == 1


def test_the_same_model_under_gguf_s_names_gives_the_same_logits() -> None:
    source = checkpoint(NAME)
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


def test_the_names_may_lack_the_prefix_of_the_bare_model() -> None:
    source = checkpoint(NAME)
    bare = {}
    for name, tensor in source.tensors.items():
        bare[name.removeprefix("transformer.")] = replace(tensor, name=name.removeprefix("transformer."))
    ids, results = [5, 6, 7], []
    for model in (source, replace(source, tensors=dict(sorted(bare.items())))):
        with engine_of(model) as engine:
            results.append(logits_of(engine, ids, [3]))
    assert set(bare) != set(source.tensors)
    assert (results[0] == results[1]).all()


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
def test_what_cannot_be_served_is_an_error_that_names_it(
    config: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        lower(checkpoint(NAME, **config))
