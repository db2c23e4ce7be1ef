"""Constraints over a real vocabulary, at a temperature at which the model says anything."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from modelc.constraints import Constraint, SchemaCheck
from modelc.runtime import LanguageModel, load
from tests.runtime.tiny_model import Answer

CASES: list[str | dict[str, Any]] = [
    r"(yes|no|maybe)",
    r"\d{4}-\d{2}-\d{2}",
    r"[A-Z][a-z]+( [a-z]+){2,5}\.",
    r"[éèê]{3,6}",
    'root ::= "[" item ("," item){2} "]"\nitem ::= [a-z]+',
    {"type": "integer", "minimum": -17, "maximum": 1234},
    {"enum": ["a/b", 'quote"', "é", 3.5, None]},
    {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 4},
    {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0}},
        "required": ["name", "age"],
        "additionalProperties": False,
    },
]


@pytest.fixture(scope="module")
def model(smollm2_gguf: Path) -> Iterator[LanguageModel]:
    model = load(smollm2_gguf, threads=1, gamma=4)
    assert isinstance(model, LanguageModel)
    with model:
        yield model


def test_what_ends_by_itself_matches_and_what_is_cut_begins_a_match(model: LanguageModel) -> None:
    prompt = model.chat_prompt_ids([{"role": "user", "content": "Write an example."}])
    asked = []
    for seed, case in enumerate(CASES * 2):
        constraint = Constraint.of_grammar(case) if isinstance(case, str) else Constraint.of_schema(case)
        asked.append((case, Answer(model, prompt, constraint=constraint, temperature=1.5, seed=seed, max_tokens=50)))
    ended = 0
    for case, answer in asked:
        text = "".join(chunk.text for chunk in answer.wait().chunks)
        if answer.reason == "stop":
            ended += 1
            if isinstance(case, str):
                pattern = r"\[[a-z]+,[a-z]+,[a-z]+\]" if "::=" in case else case
                assert re.fullmatch(pattern, text), (case, text)
            else:
                assert SchemaCheck(json.dumps(case)).mismatch(text) is None, (case, text)
        else:
            assert answer.reason == "length"
            assert len(answer.tokens) == 50
    assert ended >= len(CASES)
