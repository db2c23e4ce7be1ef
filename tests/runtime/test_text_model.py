"""Conversations with a real model: what goes on, and reasoning before an answer of a given form."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from modelc.constraints import Constraint
from modelc.errors import BadInputError
from modelc.runtime import LanguageModel, load

QUESTION = {"role": "user", "content": "Name three colors."}
THINKING = [
    {"role": "system", "content": "Think first between <think> and </think>, then answer."},
    {"role": "user", "content": "What is 1+1?"},
    {"role": "assistant", "content": '<think>I add one and one.</think>{"answer": 2}'},
    {"role": "user", "content": "What is 2+3?"},
]
SCHEMA = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}
ANSWER = Constraint.of_schema({**SCHEMA, "additionalProperties": False})


@pytest.fixture(scope="module")
def model(smollm2_gguf: Path) -> Iterator[LanguageModel]:
    model = load(smollm2_gguf, threads=1)
    assert isinstance(model, LanguageModel)
    with model:
        yield model


def test_an_answer_that_goes_on_from_any_of_its_words_is_the_same_answer(model: LanguageModel) -> None:
    answer = model.chat([QUESTION], max_tokens=12)
    tokens = model.tokenize(answer, add_special=False)
    assert len(tokens) == 12
    for n in range(1, 12):
        said = model.detokenize(tokens[:n])
        rest = model.chat([QUESTION, {"role": "assistant", "content": said}], max_tokens=12 - n)
        assert said + rest == answer


def test_a_new_message_begins_where_that_is_asked_for(model: LanguageModel) -> None:
    messages = [QUESTION, {"role": "assistant", "content": "Red,"}]
    assert model.chat(messages, max_tokens=4).startswith(" ")
    assert not model.chat(messages, max_tokens=4, continue_final_message=False).startswith(" ")
    assert model.chat([QUESTION], max_tokens=4, continue_final_message=True) != model.chat([QUESTION], max_tokens=4)
    with pytest.raises(BadInputError, match="several parts cannot be continued"):
        model.chat([QUESTION, {"role": "assistant", "content": [{"type": "text", "text": "a"}] * 2}])


def test_a_developer_says_what_the_system_says(model: LanguageModel) -> None:
    prompts = [
        model.chat_prompt_ids([{"role": role, "content": "Be brief."}, QUESTION]) for role in ("developer", "system")
    ]
    assert prompts[0] == prompts[1]


@pytest.mark.parametrize(
    ("messages", "opener"), [([*THINKING, {"role": "assistant", "content": "<think>I add"}], ""), (THINKING, "<think>")]
)
def test_reasoning_is_free_and_the_answer_behind_it_matches(
    model: LanguageModel, messages: list[dict[str, str]], opener: str
) -> None:
    text = model.chat(messages, max_tokens=60, constraint=replace(ANSWER, after="</think>", opener=opener))
    reasoning, _, answer = text.rpartition("</think>")
    assert bool(reasoning) == (opener == "" or text.startswith(opener))
    assert list(json.loads(answer)) == ["answer"]
