from collections.abc import Iterator

import pytest

from modelc.runtime import LanguageModel
from tests.runtime.test_log_probability import log_probability
from tests.runtime.tiny_model import Answer, audit, model_of, paused, tokens_of

PROMPT = tokens_of(1, 20)


@pytest.fixture(params=[0, 8])
def model(request: pytest.FixtureRequest) -> Iterator[LanguageModel]:
    with model_of(gamma=request.param) as model:
        yield model


def test_log_probabilities_are_those_of_the_raw_logits_whatever_the_sampling(model: LanguageModel) -> None:
    drawn = {"temperature": 1.5, "seed": 3, "repetition_penalty": 1.5, "logit_bias": {7: 2.0}, "top_k": 30}
    for sampling in ({}, drawn):
        answer = Answer(model, PROMPT, max_tokens=40, logprobs=True, **sampling).wait()
        logits = model.logits(PROMPT + answer.tokens)[len(PROMPT) - 1 :]
        expected = [log_probability(row, token) for row, token in zip(logits, answer.tokens, strict=False)]
        assert [each.logprob for chunk in answer.chunks for each in chunk.logprobs] == expected


def test_each_token_has_its_log_probability_also_where_a_stop_string_ends_the_answer(model: LanguageModel) -> None:
    tokens = Answer(model, PROMPT, max_tokens=40, temperature=1.0, seed=1).wait().tokens
    stop = next(chr(token) for token in tokens[10:] if 32 <= token < 127)
    answer = Answer(model, PROMPT, max_tokens=40, temperature=1.0, seed=1, logprobs=True, stop=(stop,)).wait()
    assert answer.reason == "stop"
    assert all(len(chunk.logprobs) == len(chunk.token_ids) for chunk in answer.chunks)


def test_log_probabilities_are_not_computed_unasked(model: LanguageModel) -> None:
    assert all(chunk.logprobs == () for chunk in Answer(model, PROMPT, max_tokens=3).wait().chunks)


def test_a_prompt_s_log_probabilities_are_those_of_its_logits_whatever_shares_the_batch(model: LanguageModel) -> None:
    prompt = tokens_of(5, 150)
    expected = [log_probability(row, token) for row, token in zip(model.logits(prompt), prompt[1:], strict=False)]
    assert [each.logprob for each in model.score(prompt)] == expected
    with paused(model):
        others = [Answer(model, tokens_of(seed, 90), max_tokens=30) for seed in range(4)]
        scored = [
            Answer(model, prompt[:n], max_tokens=most, prompt_logprobs=True, top_logprobs=2)
            for n, most in ((150, 0), (65, 3), (64, 3), (1, 2), (1, 0), (2, 0))
        ]
    for answer in [*others, *scored]:
        answer.wait()
    for answer, n in zip(scored, (150, 65, 64, 1, 1, 2), strict=True):
        first, *rest = answer.chunks
        assert ([each.logprob for each in first.prompt_logprobs], first.token_ids) == (expected[: n - 1], ())
        assert [each.token for each in first.prompt_logprobs] == prompt[1:n]
        assert all(len(each.top) == 2 for each in first.prompt_logprobs)
        assert all(chunk.prompt_logprobs == () and len(chunk.token_ids) == 1 for chunk in rest)
        assert len(rest) == answer.generation.completion_tokens
        assert answer.generation.cached_tokens == 0
        assert answer.reason == "length"
        if rest:
            assert answer.tokens == Answer(model, prompt[:n], max_tokens=len(rest)).wait().tokens
    audit(model)


def test_no_tokens_wanted_no_token_given(model: LanguageModel) -> None:
    answer = Answer(model, PROMPT, max_tokens=0).wait()
    assert (answer.reason, answer.tokens, answer.generation.started_s) == ("length", [], None)


def test_times_follow_one_another(model: LanguageModel) -> None:
    generation = Answer(model, PROMPT, max_tokens=1).wait().generation
    assert generation.started_s is not None
    assert generation.submitted_s <= generation.started_s


@pytest.mark.parametrize(
    "sampling",
    [
        {"typical_p": 0.8},
        {"top_n_sigma": 1.0},
        {"xtc_probability": 0.5, "xtc_threshold": 0.05},
        {"mirostat": 1, "mirostat_tau": 3.0},
        {"mirostat": 2, "mirostat_tau": 3.0},
        {"dry_multiplier": 2.0, "dry_allowed_length": 1},
        {"typical_p": 0.9, "top_n_sigma": 2.0, "top_k": 40, "top_p": 0.9, "min_p": 0.01, "dry_multiplier": 1.0},
    ],
    ids=str,
)
def test_draws_are_the_same_with_speculation_and_after_a_prefix_was_found(sampling: dict[str, float]) -> None:
    asked = {"temperature": 0.4, "seed": 6, "max_tokens": 60, **sampling}
    with model_of() as plain, model_of(gamma=8) as guessing:
        expected = Answer(plain, PROMPT * 3, **asked).wait().tokens
        again = Answer(plain, PROMPT * 3, **asked).wait()
        assert again.generation.cached_tokens > 0
        assert again.tokens == expected
        assert Answer(guessing, PROMPT * 3, **asked).wait().tokens == expected


def test_a_stop_string_in_the_last_bytes_ends_the_answer() -> None:
    """Bytes that are no character become one when the answer ends."""
    with model_of() as model:
        answer = Answer(model, PROMPT, max_tokens=1, logit_bias={0xC3: 1e6}, stop=("\ufffd",)).wait()
        assert (answer.reason, answer.generation.stop_string) == ("stop", "\ufffd")
        assert [chunk.text for chunk in answer.chunks] == [""]
