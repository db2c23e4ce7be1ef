from collections.abc import Iterator

import pytest

from modelc.runtime import LanguageModel
from modelc.runtime.log_probability import log_probability
from tests.runtime.tiny_model import Answer, model_of, tokens_of

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
        assert [value for chunk in answer.chunks for value in chunk.logprobs] == expected


def test_each_token_has_its_log_probability_also_where_a_stop_string_ends_the_answer(model: LanguageModel) -> None:
    tokens = Answer(model, PROMPT, max_tokens=40, temperature=1.0, seed=1).wait().tokens
    stop = next(chr(token) for token in tokens[10:] if 32 <= token < 127)
    answer = Answer(model, PROMPT, max_tokens=40, temperature=1.0, seed=1, logprobs=True, stop=(stop,)).wait()
    assert answer.reason == "stop"
    assert all(len(chunk.logprobs) == len(chunk.token_ids) for chunk in answer.chunks)


def test_log_probabilities_are_not_computed_unasked(model: LanguageModel) -> None:
    assert all(chunk.logprobs == () for chunk in Answer(model, PROMPT, max_tokens=3).wait().chunks)


def test_no_tokens_wanted_no_token_given(model: LanguageModel) -> None:
    answer = Answer(model, PROMPT, max_tokens=0).wait()
    assert (answer.reason, answer.tokens, answer.generation.started_s) == ("length", [], None)


def test_times_follow_one_another(model: LanguageModel) -> None:
    generation = Answer(model, PROMPT, max_tokens=1).wait().generation
    assert generation.started_s is not None
    assert generation.submitted_s <= generation.started_s
