"""Constrained answers of a whole model: they match, and nothing around them changes their bits."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from modelc.constraints import Constraint, SchemaCheck
from modelc.errors import BadInputError
from modelc.runtime import LanguageModel
from tests.runtime.tiny_model import Answer, model_of, tokens_of

PROMPT = tokens_of(1, 20)
WORDS = Constraint.of_grammar(r"([a-z]{2,6} ){3,}end\.")
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 6}, "kind": {"enum": ["large", "little"]}},
    "required": ["name", "kind"],
    "additionalProperties": False,
}
OBJECT = Constraint.of_schema(SCHEMA)


@pytest.fixture(scope="module", params=[0, 8])
def model(request: pytest.FixtureRequest) -> Iterator[LanguageModel]:
    with model_of(gamma=request.param) as model:
        yield model


def text_of(answer: Answer) -> str:
    return "".join(chunk.text for chunk in answer.wait().chunks)


@pytest.mark.parametrize("seed", range(6))
def test_answers_that_end_by_themselves_match(model: LanguageModel, seed: int) -> None:
    answer = Answer(model, PROMPT, constraint=OBJECT, temperature=2.0, seed=seed).wait()
    assert answer.reason == "stop"
    assert SchemaCheck(json.dumps(SCHEMA)).mismatch(text_of(answer)) is None
    word = Answer(model, PROMPT, constraint=Constraint.of_grammar("yes|no"), temperature=2.0, seed=seed)
    assert text_of(word) in ("yes", "no")


@pytest.mark.parametrize("max_tokens", [1, 9, 40])
def test_answers_that_are_cut_begin_a_match(model: LanguageModel, max_tokens: int) -> None:
    pattern = "(é[äö]{1,3} ){50}"
    for seed in range(4):
        sampling = {"constraint": Constraint.of_grammar(pattern), "temperature": 2.0, "seed": seed}
        answer = Answer(model, PROMPT, max_tokens=max_tokens, **sampling).wait()
        assert answer.reason == "length"
        assert re.fullmatch("(é[äö]{1,3} )*(é?|é[äö]{1,3})", text_of(answer))


def answers(model: LanguageModel, **sampling: Any) -> list[list[int]]:
    asked = [
        Answer(model, PROMPT, constraint=constraint, temperature=temperature, seed=seed, max_tokens=60, **sampling)
        for constraint in (WORDS, OBJECT, Constraint.of_grammar("(abc def ghi |xyz ){6}"))
        for temperature in (0.0, 1.5)
        for seed in range(2)
    ]
    return [answer.wait().tokens for answer in asked]


def test_nothing_changes_a_constrained_answer() -> None:
    """Neither speculation and forced tokens in one pass, nor company, nor prefixes, nor log-probabilities."""
    with model_of() as plain, model_of(gamma=8) as guessing:
        alone = [answers(plain)[i] for i in range(12)]
        assert answers(plain) == alone
        assert answers(guessing) == alone
        assert answers(guessing) == alone
        assert answers(guessing, logprobs=True) == alone
        assert answers(plain, logprobs=True) == alone


def test_forced_tokens_take_fewer_steps_than_tokens() -> None:
    with model_of() as model:
        constraint = Constraint.of_grammar("(abcdefghijklmnopqrstuvwxyz|ABCDEFGHIJKLMNOPQRSTUVWXYZ)0123456789")
        answer = Answer(model, PROMPT, constraint=constraint).wait()
        assert (answer.reason, len(answer.tokens)) == ("stop", 36)
        assert model.counters.steps < 10


def test_a_full_context_is_shifted_under_a_constraint() -> None:
    texts = set()
    for gamma in (0, 8):
        with model_of(max_context=64, gamma=gamma) as model:
            constraint = Constraint.of_grammar("((abcdef|xyz) ){60}")
            answer = Answer(model, PROMPT, constraint=constraint, temperature=1.5, seed=4, max_tokens=500).wait()
            assert answer.reason == "stop"
            texts.add(text_of(answer))
    (text,) = texts
    assert re.fullmatch("((abcdef|xyz) ){60}", text)


def test_a_stop_string_ends_a_constrained_answer_before_its_end(model: LanguageModel) -> None:
    answer = Answer(model, PROMPT, constraint=OBJECT, temperature=2.0, seed=1, stop=('"kind',)).wait()
    assert (answer.reason, answer.generation.stop_string) == ("stop", '"kind')
    assert text_of(answer).endswith(", ")


def test_a_bias_and_penalties_work_within_the_mask(model: LanguageModel) -> None:
    constraint = Constraint.of_grammar("[ab]{8}")
    answer = Answer(model, PROMPT, constraint=constraint, logit_bias={ord("a"): 50.0, ord("z"): 1000.0})
    assert text_of(answer) == "aaaaaaaa"
    alternating = Answer(model, PROMPT, constraint=constraint, presence_penalty=2.0, repetition_penalty=100.0)
    assert set(text_of(alternating)) == {"a", "b"}


def test_a_language_of_nothing_is_an_empty_answer(model: LanguageModel) -> None:
    answer = Answer(model, PROMPT, constraint=Constraint.of_grammar("")).wait()
    assert (answer.reason, text_of(answer), answer.tokens) == ("stop", "", [])


def test_a_bad_constraint_starts_nothing(model: LanguageModel) -> None:
    steps = model.counters.steps
    for constraint in (Constraint.of_grammar("["), Constraint.of_schema({"not": {}})):
        with pytest.raises(BadInputError):
            Answer(model, PROMPT, constraint=constraint)
        with pytest.raises(BadInputError):
            model.check_constraint(constraint)
    assert model.counters.steps == steps


def test_a_dead_end_ends_its_own_request_alone(model: LanguageModel) -> None:
    other = Answer(model, PROMPT, max_tokens=30)
    dead = Answer(model, PROMPT, constraint=Constraint("lark", 'start: "a" x\nx: x "b"')).wait()
    assert dead.reason == "error"
    assert isinstance(dead.generation.error, BadInputError)
    assert other.wait().reason == "length"
