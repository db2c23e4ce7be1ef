from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from modelc import layout
from modelc.dtypes import DTYPES
from modelc.errors import BadFileError
from modelc.formats import open_model
from modelc.formats.adapter import read_adapter
from modelc.ir import Model, Tensor
from modelc.models import lower
from modelc.models.lora import fit
from modelc.program import Builder
from modelc.runtime import LanguageModel
from modelc.runtime.engine import Engine
from modelc.runtime.options import Options
from tests.kernels.opcode_runner import objects
from tests.models.adapters import EVERY, Pairs, as_hugging_face, merged, pairs_for, write_adapter
from tests.models.llama_reference import reference_logits
from tests.models.tiny_llama import tiny_llama, tiny_llama_of
from tests.program.test_schedules import ascending, descending, run_by, shuffled, story
from tests.runtime.tiny_engine import logits_of

TOKENS = [int(t) for t in np.random.default_rng(5).integers(0, 50, 40)]


@contextmanager
def adapted_engine(model: Model, *adapters: tuple[Path, float], n_threads: int = 1) -> Iterator[Engine]:
    """An engine of a model with adapters, with pages for 128 positions of 3 sequences."""
    lowered = lower(model)
    fitted = fit(lowered, model.architecture, [(read_adapter(path), alpha) for path, alpha in adapters])
    weights = lowered.weights.adapted(fitted.low_rank)
    program = lowered.architecture.file.lower(lowered.config, weights, Builder(96, 96, n_threads, 128, kv="f32"))
    engine = Engine(program, weights.base, 3, 6, objects(), owned=fitted.owned)
    engine.pages[:] = np.arange(6).reshape(3, 2)
    try:
        yield engine
    finally:
        engine.close()


def adapted_logits(
    model: Model, *adapters: tuple[Path, float], n_threads: int = 1, steps: list[int] | None = None
) -> np.ndarray:
    with adapted_engine(model, *adapters, n_threads=n_threads) as engine:
        return logits_of(engine, TOKENS, steps)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("parts", [EVERY, ("attn_q", "attn_v"), ("ffn_down",), ("attn_k", "ffn_gate")])
def test_logits_are_those_of_the_merged_weights_in_float64(tied: bool, parts: tuple[str, ...], tmp_path: Path) -> None:
    model = tiny_llama(tied=tied)
    pairs = pairs_for(model, parts if tied else (*parts, "output"))
    path = write_adapter(tmp_path / "a.safetensors", pairs)
    truth = reference_logits(merged(model, pairs, 0.5), TOKENS)
    difference = adapted_logits(model, (path, 0.5)) - truth
    assert np.abs(difference).max() < 3e-4
    assert np.abs(truth - reference_logits(model, TOKENS)).max() > 0.5, "the adapter matters"


@pytest.mark.parametrize("dtype", ["q8_0", "q4_0"])
def test_beside_quantized_weights_the_adapter_is_computed_in_float32(dtype: str, tmp_path: Path) -> None:
    model = tiny_llama_of(dtype)
    pairs = pairs_for(model)
    path = write_adapter(tmp_path / "a.safetensors", pairs)
    difference = adapted_logits(model, (path, 1.0)) - reference_logits(_merged_floats(model, pairs), TOKENS)
    assert np.sqrt((difference**2).mean()) < 0.05  # activations in int8


def _merged_floats(model: Model, pairs: Pairs) -> Model:
    total = merged(model, pairs, 1.0)
    changed = {
        name: replace(tensor, dtype=DTYPES["f32"]) if name.removesuffix(".weight") in pairs else tensor
        for name, tensor in total.tensors.items()
    }
    return replace(total, tensors=changed)


@pytest.mark.parametrize("dtype", ["f32", "q4_1"])
def test_the_bits_do_not_depend_on_threads_or_batches(dtype: str, tmp_path: Path) -> None:
    model = tiny_llama(dtype)
    path = write_adapter(tmp_path / "a.safetensors", pairs_for(model, rank=20))
    expected = adapted_logits(model, (path, 1.0))
    for n_threads, steps in ((1, [1] * 40), (2, [7, 1, 32]), (3, [1, 39]), (3, [13] * 3 + [1])):
        assert np.array_equal(adapted_logits(model, (path, 1.0), n_threads=n_threads, steps=steps), expected)


@pytest.mark.parametrize("dtype", ["f32", "q8_0"])
def test_barriers_alone_keep_the_bits_in_every_order_of_the_threads(
    dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_llama(dtype)
    path = write_adapter(tmp_path / "a.safetensors", pairs_for(model, ("attn_q", "attn_v", "ffn_up", "ffn_down"), 20))
    with adapted_engine(model, (path, 1.0)) as engine:
        expected = story(engine)
    for order in (ascending, descending, shuffled(1)):
        with adapted_engine(model, (path, 1.0), n_threads=3) as engine:
            run_by(engine, order, monkeypatch)
            assert all(map(np.array_equal, story(engine), expected))


@pytest.mark.parametrize("dtype", ["f32", "q4_0", "q6_k"])
def test_an_adapter_of_zeros_leaves_the_bits(dtype: str, tmp_path: Path) -> None:
    model = tiny_llama_of(dtype)
    zeros = {name: (a, 0 * b) for name, (a, b) in pairs_for(model).items()}
    path = write_adapter(tmp_path / "a.safetensors", zeros)
    lowered = lower(model)
    engine = Engine(lowered.program(Builder(64, 64, 1, 64, kv="f32")), lowered.weights.base, 1, 1, objects())
    try:
        assert np.array_equal(adapted_logits(model, (path, 1.0)), logits_of(engine, TOKENS))
    finally:
        engine.close()


def test_rows_of_hugging_face_s_q_and_k_are_sorted_as_the_model_s(tmp_path: Path) -> None:
    model = tiny_llama()
    pairs = pairs_for(model)
    own = write_adapter(tmp_path / "own.safetensors", pairs, "{}.weight.lora_{}")
    foreign = write_adapter(tmp_path / "foreign.safetensors", as_hugging_face(pairs, 16))
    assert np.array_equal(adapted_logits(model, (own, 1.0)), adapted_logits(model, (foreign, 1.0)))


def test_several_adapters_add_up(tmp_path: Path) -> None:
    model = tiny_llama()
    first, second = pairs_for(model, ("attn_q", "ffn_up"), seed=1), pairs_for(model, ("attn_q", "attn_v"), 3, seed=2)
    paths = [write_adapter(tmp_path / f"{i}.safetensors", pairs) for i, pairs in enumerate((first, second))]
    truth = reference_logits(merged(merged(model, first, 0.5), second, -1.5), TOKENS)
    difference = adapted_logits(model, (paths[0], 0.5), (paths[1], -1.5)) - truth
    assert np.abs(difference).max() < 1e-3


def test_what_the_model_has_no_product_with_is_skipped(tmp_path: Path) -> None:
    model = tiny_llama()
    pairs = dict(pairs_for(model, ("attn_q",)))
    a, b = pairs["blk.0.attn_q"]
    unknown = {"blk.7.attn_q": (a, b), "token_embd": (a, b), "model.layers.0.block_sparse_moe.gate": (a, b)}
    path = write_adapter(
        tmp_path / "a.safetensors", {**pairs, **unknown}, extra=(("lm_head.weight", "F32", (1,), b"\0" * 4),)
    )
    fitted = fit(lower(model), "llama", [(read_adapter(path), 1.0)])
    assert fitted.applied == 2
    assert sorted(fitted.skipped) == sorted([*unknown, "lm_head.weight"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a, b: (a[:, :-1], b), "wrong shapes"),
        (lambda a, b: (a, b[:-1]), "wrong shapes"),
        (lambda a, b: (b, a), "wrong shapes"),
        (lambda a, b: (a * np.float32("nan"), b), "not finite"),
        (lambda a, b: (a, b * np.float32("inf")), "not finite"),
        (lambda a, b: (a, b + np.float32(3e38)), "not finite"),  # once it is scaled
    ],
)
def test_what_does_not_fit_is_refused(
    change: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]], message: str, tmp_path: Path
) -> None:
    model = tiny_llama(n_kv_heads=1)
    pairs = dict(pairs_for(model))
    pairs["blk.1.attn_k"] = change(*pairs["blk.1.attn_k"])
    path = write_adapter(tmp_path / "a.safetensors", pairs)
    with pytest.raises(BadFileError, match=message) as caught:
        fit(lower(model), "llama", [(read_adapter(path), 2.0)])
    assert "blk.1.attn_k" in str(caught.value)


def test_an_adapter_of_another_model_is_refused(tmp_path: Path) -> None:
    pairs = {f"blk.9.{part}": pair for part, pair in pairs_for(tiny_llama(), ("attn_q",)).items()}
    path = write_adapter(tmp_path / "a.safetensors", pairs)
    with pytest.raises(BadFileError, match="another model"):
        fit(lower(tiny_llama()), "llama", [(read_adapter(path), 1.0)])


@pytest.mark.parametrize(
    ("dtype", "scale", "stored"),
    [("F16", 2.0, "f16"), ("F16", 1 / 3, "f32"), ("F32", 1.0, "f32"), ("F64", 1.0, "f32"), ("F32", 0.0, "bf16")],
)
def test_matrices_are_kept_in_the_smallest_type_that_loses_nothing(
    dtype: str, scale: float, stored: str, tmp_path: Path
) -> None:
    model = tiny_llama()
    path = write_adapter(tmp_path / "a.safetensors", pairs_for(model, ("attn_q",), rank=19), dtype=dtype)
    fitted = fit(lower(model), "llama", [(read_adapter(path), scale)])
    assert {pair.b.dtype for pair in fitted.low_rank.values()} == {stored}
    (a, b) = (pair := read_adapter(path).pairs[0]).a, pair.b
    values = b.stored.view({"F16": "<f2", "F32": "<f4", "F64": "<f8"}[dtype]).astype(np.float64) * scale
    tensor = Tensor("", DTYPES[stored], b.shape, _in_type(values.astype(np.float32), stored))
    assert np.array_equal(fitted.owned[1], layout.lanes_bytes(tensor)), "the order that kernels read"
    assert a.shape == (19, 64)


def _in_type(values: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "bf16":
        return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    return values.astype({"f16": np.float16, "f32": np.float32}[dtype]).view(np.uint8)


@pytest.mark.parametrize("dtype", ["I32", "U8", "F8_E4M3"])
def test_types_that_no_adapter_has_are_refused(dtype: str, tmp_path: Path) -> None:
    size = {"I32": 4, "U8": 1, "F8_E4M3": 1}[dtype]
    extra = tuple((f"blk.0.attn_q.lora_{part}", dtype, (64, 64), b"\0" * 4096 * size) for part in "AB")
    path = write_adapter(tmp_path / "a.safetensors", {}, extra=extra)
    with pytest.raises(BadFileError, match="not a float matrix"):
        fit(lower(tiny_llama()), "llama", [(read_adapter(path), 1.0)])


HF_CASES = Path(__file__).parents[1] / "data" / "hf"
DECODERS = [
    "gemma3-tiny",
    "gpt2-tiny",
    "llama-tiny-gqa-untied",
    "mistral-tiny",
    "phi3-tiny",
    "qwen2-tiny",
    "qwen3-tiny",
]


@pytest.mark.parametrize("name", DECODERS)
def test_adapters_of_hugging_face_s_checkpoints_are_those_of_the_merged_weights(name: str, tmp_path: Path) -> None:
    """Names, stored orders and fused matrices of every architecture."""
    model = open_model(HF_CASES / name)
    rng = np.random.default_rng(3)
    architecture = lower(model).architecture
    changed, pairs = dict(model.tensors), {}
    for own, tensor in model.tensors.items():
        is_product = len(tensor.shape) == 2 and not any(part in own for part in ("embed_tokens", "wte", "wpe"))
        if is_product:
            turned = "Conv1D" if architecture.hugging_face.transposed else ""
            cols, rows = tensor.shape if turned else tensor.shape[::-1]
            a = rng.standard_normal((3, cols)).astype(np.float32) / np.float32(cols**0.5)
            b = rng.standard_normal((rows, 3)).astype(np.float32) * np.float32(0.1)
            w = layout.dequantize(tensor.dtype, layout.plain_bytes(tensor), tensor.shape)
            total = w + ((b @ a).T if turned else b @ a)
            stored = np.ascontiguousarray(total.astype(np.float32)).reshape(-1).view(np.uint8)
            changed[own] = replace(tensor, dtype=DTYPES["f32"], stored=stored)
            pairs["base_model.model." + own.removesuffix(".weight")] = (a, b)
    path = write_adapter(tmp_path / "a.safetensors", pairs)
    ids = [3, 17, 2, 9, 30, 5, 8, 1, 22, 4] * 2
    with LanguageModel(replace(model, tensors=changed), Options(1, kv="f32")) as truth:
        expected = truth.logits(ids)
    with LanguageModel(model, Options(1, kv="f32")) as adapted:
        base = adapted.logits(ids)
        report = adapted.load_lora(path)
        assert (report.applied, report.skipped) == (len(pairs), 0)
        scale = np.abs(expected).max()
        assert np.abs(adapted.logits(ids) - expected).max() < 1e-3 * scale
        assert np.abs(base - expected).max() > 0.05 * scale
