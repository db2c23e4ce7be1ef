import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from modelc.errors import BadInputError, ModelcError, NotFoundError
from modelc.runtime import Chunk, LanguageModel
from modelc.runtime.kernel_names import kernel_names
from modelc.runtime.options import Options
from tests.models.adapters import merged, pairs_for, write_adapter
from tests.models.tiny_llama import tiny_llama, tiny_llama_of
from tests.runtime.tiny_model import Answer, Gate, audit, tokens_of

BASE = tiny_llama(vocab_size=256)
PROMPT = tokens_of(1, 100)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two adapters."""
    folder = tmp_path_factory.mktemp("adapters")
    return [write_adapter(folder / f"{i}.safetensors", pairs_for(BASE, rank=5, seed=i)) for i in range(2)]


@pytest.fixture
def model() -> Iterator[LanguageModel]:
    with LanguageModel(BASE, Options(2)) as model:
        yield model


def greedy(model: LanguageModel, prompt: list[int] = PROMPT, n: int = 12) -> list[int]:
    return Answer(model, prompt, max_tokens=n).wait().tokens


def test_loading_and_unloading_change_the_logits_and_bring_them_back(model: LanguageModel, paths: list[Path]) -> None:
    before = model.logits(PROMPT)
    report = model.load_lora(paths[0])
    assert (report.applied, report.skipped) == (14, 0)
    assert "14 weights" in report.message
    adapted = model.logits(PROMPT)
    with LanguageModel(merged(BASE, pairs_for(BASE, rank=5, seed=0), 1.0), Options(2)) as truth:
        assert np.abs(adapted - truth.logits(PROMPT)).max() < 0.05  # keys and values are f16
    assert np.abs(adapted - before).max() > 0.5
    model.load_lora(paths[1])
    assert np.abs(model.logits(PROMPT) - adapted).max() > 0.5
    model.load_lora(paths[0])
    assert np.array_equal(model.logits(PROMPT), adapted)
    model.unload_lora()
    assert np.array_equal(model.logits(PROMPT), before)
    model.unload_lora()
    assert np.array_equal(model.logits(PROMPT), before)


def test_everything_that_a_model_does_is_adapted(model: LanguageModel, paths: list[Path]) -> None:
    def all_of() -> list[np.ndarray]:
        vectors = np.linspace(-1, 1, 64, dtype=np.float32)
        return [model.logits(PROMPT), model.hidden(PROMPT), model.embed(PROMPT), model.infer(vectors)]

    base = all_of()
    model.load_lora(paths[0])
    adapted = all_of()
    model.unload_lora()
    assert all(map(np.array_equal, all_of(), base))
    assert not any(np.allclose(a, b, atol=0.1) for a, b in zip(adapted, base, strict=True))


def test_answers_in_flight_end_on_the_weights_they_began_with(model: LanguageModel, paths: list[Path]) -> None:
    alone = [greedy(model)]
    for path in paths:
        model.load_lora(path)
        alone.append(greedy(model))
    model.unload_lora()
    assert alone[0] != alone[1] != alone[2] != alone[0]
    gate = Gate()
    first = Answer(model, PROMPT, gate, max_tokens=12)
    gate.wait()
    model.load_lora(paths[0])
    second = Answer(model, PROMPT, max_tokens=12)
    model.load_lora(paths[1])
    third = Answer(model, PROMPT, max_tokens=12)
    model.unload_lora()
    fourth = Answer(model, PROMPT, max_tokens=12)
    gate.open()
    answers = [answer.wait().tokens for answer in (first, second, third, fourth)]
    assert answers == [*alone, alone[0]]
    audit(model)


def test_kept_prefixes_are_used_by_the_adapter_that_made_them_alone(model: LanguageModel, paths: list[Path]) -> None:
    expected = greedy(model)
    model.load_lora(paths[0])
    with_adapter = Answer(model, PROMPT, max_tokens=12).wait()
    assert with_adapter.generation.cached_tokens == 0
    again = Answer(model, PROMPT, max_tokens=12).wait()
    assert again.generation.cached_tokens == len(PROMPT) - 1
    assert again.tokens == with_adapter.tokens != expected
    model.unload_lora()
    back = Answer(model, PROMPT, max_tokens=12).wait()
    assert (back.tokens, back.generation.cached_tokens) == (expected, len(PROMPT) - 1)
    audit(model)
    assert model.counters.kept_prefixes == 1, "what the adapter made is given up with it"


def test_an_adapter_that_no_request_needs_is_closed(model: LanguageModel, paths: list[Path]) -> None:
    for _ in range(3):
        for path in paths:
            model.load_lora(path)
            greedy(model, n=2)
    model.unload_lora()
    greedy(model, n=2)
    assert model._scheduler._retired == []
    assert model._scheduler._memory.prefixes._roots.keys() == {model._scheduler.engine}


@pytest.mark.parametrize("options", [{"gamma": 4}, {"kv": "mixed"}, {"max_context": 128, "anchor_tokens": 3}])
def test_speculation_types_of_keys_and_shifts_work_with_adapters(options: dict[str, object], paths: list[Path]) -> None:
    with LanguageModel(BASE, Options(1, kv=str(options.get("kv", "f16")))) as plain:
        plain.load_lora(paths[0])
        expected = greedy(plain, n=20)
    with LanguageModel(BASE, Options(2, **options)) as model:  # type: ignore[arg-type]
        model.load_lora(paths[0])
        assert greedy(model, n=20) == expected
        long = Answer(model, PROMPT, max_tokens=100).wait()
        assert long.reason == "length"
        audit(model)


def test_answers_begun_together_have_the_same_adapter(model: LanguageModel, paths: list[Path]) -> None:
    swapped = threading.Event()

    def swap() -> None:
        model.load_lora(paths[0])
        swapped.set()

    with model.pinned():
        first = Answer(model, PROMPT, max_tokens=12)
        thread = threading.Thread(target=swap)
        thread.start()
        assert not swapped.wait(0.5)
        second = Answer(model, PROMPT, max_tokens=12)
    thread.join()
    assert first.wait().tokens == second.wait().tokens != greedy(model)


def test_a_failure_changes_nothing(model: LanguageModel, paths: list[Path], tmp_path: Path) -> None:
    model.load_lora(paths[0])
    before = model.logits(PROMPT)
    bad = write_adapter(tmp_path / "bad.safetensors", {"blk.0.attn_q": (np.ones((2, 3)), np.ones((4, 2)))})
    for path, alpha, error in (
        (bad, 1.0, ModelcError),
        (tmp_path / "no", 1.0, NotFoundError),
        (paths[1], float("nan"), BadInputError),
        (paths[1], float("inf"), BadInputError),
        (paths[1], 1e9, BadInputError),
    ):
        with pytest.raises(error):
            model.load_lora(path, alpha)
    assert np.array_equal(model.logits(PROMPT), before)


def test_many_swaps_under_load_leave_every_answer_whole(model: LanguageModel, paths: list[Path]) -> None:
    alone = {}
    for i, path in enumerate([None, *paths]):
        model.unload_lora() if path is None else model.load_lora(path)
        alone[i] = [greedy(model, tokens_of(seed, 30 + seed), 8) for seed in range(4)]
    answers = []
    for turn in range(6):
        which = turn % 3
        model.unload_lora() if which == 0 else model.load_lora(paths[which - 1])
        answers += [(which, seed, Answer(model, tokens_of(seed, 30 + seed), max_tokens=8)) for seed in range(4)]
    for which, seed, answer in answers:
        assert answer.wait().tokens == alone[which][seed]
    audit(model)


def test_a_closed_model_takes_no_adapter(paths: list[Path]) -> None:
    model = LanguageModel(BASE, Options(1))
    model.load_lora(paths[0])
    chunks: list[Chunk] = []
    Answer(model, PROMPT, chunks.append, max_tokens=3).wait()
    model.close()
    with pytest.raises(ModelcError, match="closed"):
        model.load_lora(paths[0])


@pytest.mark.parametrize(("weights", "dtype"), [("f32", "F32"), ("q4_0", "F16"), ("q6_k", "F32")])
def test_adapters_ask_for_no_kernel_that_is_not_built_ahead_of_time(weights: str, dtype: str, tmp_path: Path) -> None:
    base = tiny_llama_of(weights, vocab_size=256)
    path = write_adapter(tmp_path / "a.safetensors", pairs_for(base, ("attn_q", "ffn_down")), dtype=dtype)
    with LanguageModel(base, Options(1)) as model:
        model.load_lora(path)
        assert set(model._scheduler.engine.program.opcodes) <= set(kernel_names(base))
