"""`int8` and `mixed` beside the float types: how near they are, and what must not change their bits."""

import queue

import numpy as np
import numpy.typing as npt
import pytest

from modelc.errors import BadInputError
from modelc.runtime.engine import Engine, Rows
from modelc.runtime.generation import Chunk
from modelc.runtime.model import LanguageModel
from modelc.runtime.options import Options
from modelc.runtime.sampling import Sampling
from tests.models.tiny_llama import tiny_llama
from tests.runtime.tiny_engine import engine_of, logits_of

F32 = npt.NDArray[np.float32]

TOKENS = [int(t) for t in np.random.default_rng(0).integers(0, 50, 140)]
MODEL = tiny_llama()


def logits(kv: str, window: int = 64) -> F32:
    with engine_of(MODEL, kv=kv, kv_hot_window=window) as engine:
        return logits_of(engine, TOKENS)


def test_mixed_is_int8_without_a_hot_window_and_f32_with_one_over_everything() -> None:
    assert np.array_equal(logits("mixed", 0), logits("int8"))
    assert np.array_equal(logits("mixed", 140), logits("f32"))
    assert not np.array_equal(logits("mixed", 139)[139], logits("f32")[139])
    assert np.array_equal(logits("mixed", 139)[:139], logits("mixed", 140)[:139])


def divergence(a: F32, b: F32) -> float:
    """Mean KL divergence of softmax(b) from softmax(a)."""
    p, q = (x.astype(np.float64) - np.log(np.exp(x.astype(np.float64)).sum(1, keepdims=True)) for x in (a, b))
    return float((np.exp(p) * (p - q)).sum(1).mean())


def test_int8_and_mixed_are_near_f16() -> None:
    f16 = logits("f16")
    int8, mixed = divergence(f16, logits("int8")), divergence(f16, logits("mixed"))
    assert 0 < 4 * mixed < int8 < 1e-4


def shifted(engine: Engine, steps: list[int]) -> F32:
    """Logits of what follows after positions 4 to 34 of 100 were dropped."""
    engine.run([Rows(1, 0, TOKENS[:100], 0)])
    pages = engine.pages[1].tolist()
    engine.shift(pages, pages, 4, 30, 100)
    out, at = [], 70
    for count in steps:
        out.append(engine.run([Rows(1, at, TOKENS[at + 30 : at + 30 + count], count)]).copy())
        at += count
    return np.concatenate(out)


@pytest.mark.parametrize("kv", ["int8", "mixed"])
def test_a_shifted_sequence_goes_on_as_if_what_was_dropped_had_never_been(kv: str) -> None:
    model = tiny_llama(n_layers=1)  # with one layer, keys and values do not depend on the tokens before
    with engine_of(model) as engine:
        exact = logits_of(engine, TOKENS[:4] + TOKENS[34:130])[70:]
    with engine_of(model, 1, kv=kv, kv_hot_window=10) as engine:
        alone = shifted(engine, [1] * 30)
    assert 1e-3 < np.sqrt(((alone - exact) ** 2).mean()) < 0.01
    with engine_of(model, 3, kv=kv, kv_hot_window=10) as engine:
        assert np.array_equal(shifted(engine, [30]), alone)
        assert np.array_equal(shifted(engine, [5, 1, 24]), alone)


def answer(model: LanguageModel, prompt: list[int]) -> tuple[list[int], int]:
    """Tokens of an answer, and how many of the prompt's were there already."""
    chunks: queue.SimpleQueue[Chunk] = queue.SimpleQueue()
    generation = model.submit(prompt, Sampling(max_tokens=60), chunks.put)
    tokens: list[int] = []
    while (chunk := chunks.get(timeout=60)).finish_reason is None:
        tokens += chunk.token_ids
    return [*tokens, *chunk.token_ids], generation.cached_tokens


@pytest.mark.parametrize("kv", ["int8", "mixed"])
def test_kept_prefixes_and_speculation_change_no_answer(kv: str) -> None:
    model = tiny_llama(vocab_size=256)
    prompts = [TOKENS[:90], TOKENS[:77] + TOKENS[90:100], TOKENS[:130]]
    fresh = []
    for prompt in prompts:
        with LanguageModel(model, Options(1, kv=kv, kv_hot_window=20)) as alone:
            fresh.append(answer(alone, prompt)[0])
    with LanguageModel(model, Options(2, kv=kv, kv_hot_window=20, gamma=4)) as shared:
        answers = [answer(shared, prompt) for prompt in prompts]
    assert [tokens for tokens, _ in answers] == fresh
    assert [cached for _, cached in answers] == [0, 77, 90]


def test_other_types_and_windows_are_refused() -> None:
    with pytest.raises(BadInputError, match="f16 or f32 or int8 or mixed"):
        Options(1, kv="q4").check()
    with pytest.raises(BadInputError, match="kv_hot_window"):
        Options(1, kv="mixed", kv_hot_window=-1).check()
    Options(1, kv="mixed", kv_hot_window=0).check()
