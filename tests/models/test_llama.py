import json

import numpy as np
import pytest

from modelc.dtypes import DTYPES
from modelc.errors import BadFileError, UnsupportedError
from modelc.ir import Model, Tensor
from modelc.models import lower
from modelc.models.frequencies import RopeScaling
from modelc.models.llama import Config
from modelc.program import Builder
from modelc.runtime.engine import Rows
from tests.kernels.stored_blocks import BLOCK_TYPES
from tests.models.checkpoints import HF_CASES, checkpoint, largest_difference
from tests.models.llama_reference import reference_logits
from tests.models.tiny_llama import tiny_llama, tiny_llama_of
from tests.runtime.tiny_engine import engine_of, logits_of

TOKENS = [int(t) for t in np.random.default_rng(5).integers(0, 50, 70)]


def errors(model: Model, activation: str = "a8", kv: str = "f32") -> np.ndarray:
    """Differences from the float64 forward, for a prompt of 69 tokens and one more."""
    truth = reference_logits(model, TOKENS)
    assert truth.std() > 0.5, "the logits are large enough for absolute bounds to mean something"
    with engine_of(model, activation=activation, kv=kv) as engine:
        return logits_of(engine, TOKENS, [69, 1]) - truth


@pytest.mark.parametrize(
    "model",
    [
        tiny_llama("f32"),
        tiny_llama("f32", tied=False, n_kv_heads=2, seed=2),
        tiny_llama("f32", dim=50, ffn_dim=71),
        tiny_llama({"": "f16", "ffn_down": "bf16", "attn_q": "f32"}, ffn_dim=33),
        tiny_llama("bf16", n_layers=1),
    ],
    ids=["tied", "untied", "odd", "mixed", "bf16"],
)
def test_with_float_weights_the_logits_are_those_of_the_float64_forward(model: Model) -> None:
    assert np.abs(errors(model)).max() < 2e-4


def test_keys_and_values_in_f16_are_nearly_exact() -> None:
    difference = errors(tiny_llama("f32"), kv="f16")
    assert 0 < np.abs(difference).max() < 2e-2


@pytest.mark.parametrize("dtype", BLOCK_TYPES)
def test_every_block_type_computes_the_same_model(dtype: str) -> None:
    difference = errors(tiny_llama_of(dtype))
    assert np.sqrt((difference**2).mean()) < 0.05  # activations in int8


@pytest.mark.parametrize("dtype", ["q8_0", "q6_k"])
def test_with_activations_in_int16_block_types_are_nearly_exact(dtype: str) -> None:
    assert np.abs(errors(tiny_llama_of(dtype), activation="a16")).max() < 2e-3


# -------------------------------------------------------------------------------------------------- configuration


def test_the_configuration_comes_from_the_keys() -> None:
    config = Config.from_gguf(tiny_llama(n_layers=3, metadata={"llama.rope.freq_base": 5e5}))
    expected = Config(3, 64, 4, 2, 16, 16, 96, 256, 50, 1e-5, 5e5, RopeScaling(), "pairs", False, False, (0, 0, 0))
    assert config == expected


def test_keys_that_may_be_missing_have_the_format_s_defaults() -> None:
    model = tiny_llama(n_kv_heads=4)
    for key in ("attention.head_count_kv", "attention.key_length", "rope.freq_base"):
        del model.metadata["llama." + key]
    config = Config.from_gguf(model)
    assert (config.n_kv_heads, config.head_dim, config.rope_theta) == (4, 16, 10000.0)


@pytest.mark.parametrize(
    ("key", "value", "error", "message"),
    [
        ("attention.head_count_kv", 3, BadFileError, "kv heads.*divisor of 4 heads"),
        ("attention.key_length", 8, UnsupportedError, "divisible by 16"),
        ("rope.dimension_count", 8, UnsupportedError, "divisible by 16.*8 rotated|8 rotated.*divisible by 16"),
        ("rope.scaling.type", "ntk", UnsupportedError, "RoPE scaling.*ntk"),
        ("attention.sliding_window", -1, BadFileError, "sliding_window"),
        ("expert_count", 8, UnsupportedError, "expert_count.*8"),
        ("attention.value_length", 32, UnsupportedError, "values of another size"),
        ("block_count", 1, UnsupportedError, r"blk\.1\..*does not know|does not know.*blk\.1\."),
        ("block_count", None, BadFileError, "llama.block_count"),
        ("block_count", 0, BadFileError, "llama.block_count"),
        ("embedding_length", "64", BadFileError, "llama.embedding_length"),
        ("attention.layer_norm_rms_epsilon", float("nan"), BadFileError, "rms_epsilon"),
        ("rope.freq_base", 0.0, BadFileError, "rope.freq_base"),
    ],
)
def test_a_key_that_cannot_be_served_is_an_error_that_names_it(
    key: str, value: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        lower(tiny_llama(metadata={"llama." + key: value}))


@pytest.mark.parametrize("divisor", [0.0, -1.0, float("nan"), float("inf")])
def test_divisors_of_the_frequencies_must_be_positive_numbers(divisor: float) -> None:
    model = tiny_llama()
    values = np.full(8, divisor, np.float32)
    factors = Tensor("rope_freqs.weight", DTYPES["f32"], (8,), values.view(np.uint8))
    tensors = dict(sorted({**model.tensors, factors.name: factors}.items()))
    with pytest.raises(BadFileError, match="divisors of RoPE frequencies"):
        lower(Model("tiny", "llama", "gguf", model.metadata, tensors)).program(Builder(8, 8, 1, 64))


@pytest.mark.parametrize(
    "name",
    [
        "llama-tiny-gqa-untied",
        "llama-tiny-rope-linear",
        "llama-tiny-rope-yarn",
        "mistral-tiny",
        "phi3-tiny",
        "qwen2-tiny",
        "qwen3-tiny",
    ],
)
def test_hugging_face_checkpoints_give_the_float64_outputs(name: str) -> None:
    assert largest_difference(checkpoint(name), name) < 2e-4


def test_longrope_has_other_divisors_for_contexts_longer_than_the_original_one() -> None:
    name = "phi3-tiny-longrope"
    assert largest_difference(checkpoint(name), name, n_pages=1) < 2e-4  # the original context
    *_, long = json.loads((HF_CASES / name / "expected.json").read_text("utf-8"))
    with engine_of(checkpoint(name), kv="f32") as engine:
        logits = logits_of(engine, long["ids"], [60, 40])
    assert np.abs(logits[-4:] - np.array(long["values"])).max() < 2e-4


@pytest.mark.parametrize(
    ("name", "config", "error", "message"),
    [
        ("mistral-tiny", {"sliding_window": "16"}, BadFileError, "sliding_window"),
        ("mistral-tiny", {"hidden_act": "gelu"}, UnsupportedError, "activation.*gelu"),
        ("qwen3-tiny", {"layer_types": ["sliding_attention"]}, BadFileError, "layer_types.*1 of.*2 of"),
        ("qwen3-tiny", {"layer_types": ["chunked_attention"] * 2}, BadFileError, "layer_types.*chunked"),
        ("qwen3-tiny", {"layer_types": "full"}, BadFileError, "layer_types"),
        ("mistral-tiny", {"rope_parameters": {"rope_theta": 1}}, BadFileError, "rope_theta"),
        (
            "mistral-tiny",
            {"rope_parameters": {"rope_type": "llama3", "factor": 2, "high_freq_factor": 1}},
            BadFileError,
            "low_freq_factor below high_freq_factor",
        ),
        (
            "mistral-tiny",
            {"rope_parameters": {"rope_type": "yarn", "factor": 2, "original_max_position_embeddings": 1}},
            BadFileError,
            "original context of 2",
        ),
        ("phi3-tiny", {"rope_parameters": {"partial_rotary_factor": 0.3}}, UnsupportedError, "9 rotated"),
        ("phi3-tiny-longrope", {"rope_parameters": {"rope_type": "longrope"}}, BadFileError, "short_factor"),
        (
            "phi3-tiny-longrope",
            {"rope_parameters": {"rope_type": "longrope", "short_factor": [1.0] * 8, "long_factor": [1.0, 0]}},
            BadFileError,
            "long_factor",
        ),
        (
            "phi3-tiny-longrope",
            {"rope_parameters": {"rope_type": "longrope", "short_factor": [1.0] * 7, "long_factor": [1.0] * 8}},
            BadFileError,
            "RoPE factors.*7.*8",
        ),
    ],
)
def test_a_configuration_that_cannot_be_served_is_an_error_that_names_it(
    name: str, config: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        lower(checkpoint(name, **config))


def test_layers_from_max_window_layers_on_have_the_window() -> None:
    assert lower(checkpoint("qwen3-tiny", layer_types=None)).config.windows == (0, 16)
    assert lower(checkpoint("qwen3-tiny", layer_types=None, use_sliding_window=False)).config.windows == (0, 0)


@pytest.mark.parametrize("name", ["mistral-tiny", "phi3-tiny", "gemma3-tiny-global"])
def test_threads_cuts_and_batches_do_not_change_a_bit_of_a_model_with_windows(name: str) -> None:
    model = checkpoint(name)
    ids = [int(t) for t in np.random.default_rng(3).integers(3, 320, 90)]
    for kv in ("f16", "int8", "mixed"):
        bits = set()
        for threads, cuts in ((1, [90]), (2, [1] * 90), (3, [9, 40, 30, 11])):
            with engine_of(model, threads, kv=kv, kv_hot_window=10) as engine:
                bits.add(logits_of(engine, ids, cuts).tobytes())
                other = [Rows(1, 0, ids[7:40], 0), Rows(2, 0, ids[:80], 0)]
                engine.run(other)
                mixed = engine.run([Rows(1, 33, ids[40:41], 1), Rows(2, 80, ids[80:], 10)])[1:]
                assert mixed.tobytes() == logits_of(engine, ids, [80, 10], slot=3)[80:].tobytes()
        assert len(bits) == 1


@pytest.mark.parametrize("missing", ["token_embd.weight", "blk.1.ffn_up.weight", "output_norm.weight"])
def test_a_missing_tensor_is_named(missing: str) -> None:
    model = tiny_llama()
    del model.tensors[missing]
    with pytest.raises(BadFileError, match=missing):
        lower(model)


def test_a_tensor_of_another_shape_is_named_with_both_shapes() -> None:
    with pytest.raises(BadFileError, match=r"blk\.0\.ffn_down\.weight.*got \(64, 96\), expected \(64, 100\)"):
        lower(tiny_llama(metadata={"llama.feed_forward_length": 100}))
