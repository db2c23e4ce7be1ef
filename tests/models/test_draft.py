import numpy as np
import numpy.typing as npt
import pytest

from modelc import layout
from modelc.dtypes import DTYPES
from modelc.errors import BadFileError, UnsupportedError
from modelc.ir import Model, Tensor
from modelc.models import draft, lower
from modelc.program import Builder
from modelc.runtime.engine import Engine, Rows
from tests.kernels.opcode_runner import objects
from tests.models.tiny_draft import with_random_draft, with_tensors, zeros
from tests.models.tiny_llama import tiny_llama, tiny_llama_of
from tests.runtime.tiny_engine import engine_of, logits_of

TOKENS = [3, 49, 0, 17, 17, 31]


def logits(model: Model, batches: list[list[int]], activation: str = "a8", n_threads: int = 1) -> np.ndarray:
    config, weights = draft.load(model, lower(model).weights)
    program = draft.lower(config, weights, Builder(8, 8, n_threads, 1, activation))
    engine = Engine(program, weights.base, 1, 0, objects())
    try:
        return np.concatenate([engine.run([Rows(0, 0, batch, len(batch))]).copy() for batch in batches])
    finally:
        engine.close()


def reference_logits(model: Model, tokens: list[int]) -> npt.NDArray[np.float64]:
    def values(name: str) -> npt.NDArray[np.float64]:
        tensor = model.tensors[name]
        return layout.dequantize(tensor.dtype, layout.plain_bytes(tensor), tensor.shape).astype(np.float64)

    embedding = values("draft.embed.weight" if "draft.embed.weight" in model.tensors else "token_embd.weight")
    hidden = np.maximum(embedding[tokens] @ values("draft.fc1.weight").T + values("draft.fc1.bias"), 0)
    assert (hidden == 0).any()
    return hidden @ values("draft.fc2.weight").T + values("draft.fc2.bias")


@pytest.mark.parametrize(
    "model",
    [
        with_random_draft(tiny_llama()),
        with_random_draft(tiny_llama(dim=50), hidden_dim=37),
        with_random_draft(tiny_llama(), dim=24, hidden_dim=16, dtype="f16"),
        with_random_draft(tiny_llama("q8_0"), dtype="bf16"),
    ],
    ids=["borrowed", "odd", "own", "quantized target"],
)
def test_with_float_weights_the_logits_are_those_of_the_float64_forward(model: Model) -> None:
    truth = reference_logits(model, TOKENS)
    assert truth.std() > 0.5
    assert np.abs(logits(model, [TOKENS]) - truth).max() < 1e-4


@pytest.mark.parametrize("dtype", ["q8_0", "q4_0"])
def test_with_activations_in_int16_block_types_are_nearly_exact(dtype: str) -> None:
    model = with_random_draft(tiny_llama(), 64, dtype)
    truth = reference_logits(model, TOKENS)
    assert np.abs(logits(model, [TOKENS], "a16") - truth).max() < 2e-3 * truth.std()


@pytest.mark.parametrize("dtype", ["f32", "q8_0"])
def test_threads_and_batches_do_not_change_a_bit(dtype: str) -> None:
    model = with_random_draft(tiny_llama(), 64, dtype)
    expected = logits(model, [[token] for token in TOKENS])
    for n_threads in (1, 2, 3):
        assert np.array_equal(logits(model, [TOKENS], n_threads=n_threads), expected)
        assert np.array_equal(logits(model, [TOKENS[:2], TOKENS[2:]], n_threads=n_threads), expected)


def test_the_draft_has_neither_pages_nor_counters_and_one_barrier_between_its_layers() -> None:
    model = with_random_draft(tiny_llama())
    config, weights = draft.load(model, lower(model).weights)
    program = draft.lower(config, weights, Builder(1, 1, 3, 1))
    assert (program.page_bytes, program.kv_layers, program.counters, program.vocab_size) == (0, [], 0, 50)
    assert program.opcodes == ["embed.f32", "matmul.f32", "bias.relu", "bias.none"]
    assert [bool(mask & 1) for mask in program.table[:, 1]] == [False, False, False, True, False]


def test_the_embedding_is_borrowed_in_place() -> None:
    model = with_random_draft(tiny_llama_of("q4_k"))  # from a source in the plain layout: lanes are made once
    target = lower(model).weights
    _, weights = draft.load(model, target)
    name = "token_embd.weight"
    assert weights.base + weights.matrix(name).offset == target.base + target.matrix(name).offset


def test_the_draft_s_tensors_do_not_disturb_the_model_beside_them() -> None:
    plain = tiny_llama()
    with engine_of(plain) as alone, engine_of(with_random_draft(plain, dim=24)) as beside:
        assert np.array_equal(logits_of(beside, TOKENS), logits_of(alone, TOKENS))


# --------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (zeros("draft.fc1.weight", 32, 60), r"fc1\.weight.*got \(32, 60\), expected \(32, 64\).*no draft\.embed"),
        (zeros("draft.fc1.weight", 32), r"fc1\.weight.*got \(32,\), expected \(hidden, dim\)"),
        (zeros("draft.fc1.bias", 31), r"fc1\.bias.*got \(31,\), expected \(32,\)"),
        (zeros("draft.fc2.weight", 49, 32), r"fc2\.weight.*got \(49, 32\), expected \(50, 32\)"),
        (zeros("draft.fc2.weight", 50, 31), r"fc2\.weight.*got \(50, 31\), expected \(50, 32\)"),
        (zeros("draft.fc2.bias", 50, 1), r"fc2\.bias.*got \(50, 1\), expected \(50,\)"),
        (zeros("draft.embed.weight", 50, 24), r"fc1\.weight.*got \(32, 64\), expected \(32, 24\).*draft\.embed"),
        (zeros("draft.embed.weight", 49, 64), r"embed\.weight.*got \(49, 64\), expected \(50, 64\)"),
        (zeros("draft.embed.weight", 64), r"embed\.weight.*expected \(vocabulary, dim\)"),
    ],
)
def test_a_tensor_of_another_shape_is_named_with_both_shapes(tensor: Tensor, message: str) -> None:
    model = with_tensors(with_random_draft(tiny_llama()), tensor)
    with pytest.raises(BadFileError, match=f"wrong shape.*{message}"):
        draft.load(model, lower(model).weights)


@pytest.mark.parametrize("missing", ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"])
def test_a_missing_tensor_is_named(missing: str) -> None:
    model = with_random_draft(tiny_llama())
    del model.tensors[f"draft.{missing}"]
    with pytest.raises(BadFileError, match=rf"tensor missing.*draft\.{missing}"):
        draft.load(model, lower(model).weights)


def test_a_type_that_kernels_do_not_read_is_refused() -> None:
    wide = Tensor("draft.fc1.bias", DTYPES["f64"], (32,), np.zeros(256, np.uint8))
    model = with_tensors(with_random_draft(tiny_llama()), wide)
    with pytest.raises(UnsupportedError, match=r"draft\.fc1\.bias.*f64"):
        draft.load(model, lower(model).weights)
