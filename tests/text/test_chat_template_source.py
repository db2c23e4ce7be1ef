from typing import Any

import pytest

from modelc.text import chat_template_of

NAMED = [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]


@pytest.mark.parametrize(
    ("metadata", "source"),
    [
        ({}, None),
        ({"tokenizer.chat_template": "g"}, "g"),
        ({"chat_template": "j", "tokenizer_config": {"chat_template": "c"}}, "j"),
        ({"tokenizer_config": {"chat_template": "c"}}, "c"),
        ({"tokenizer_config": {"chat_template": NAMED}}, "d"),
        ({"tokenizer_config": {"chat_template": NAMED[:1]}}, "t"),
        ({"chat_template": {"other": "o", "default": "d"}}, "d"),
        ({"chat_template": "", "tokenizer_config": {"chat_template": "c"}}, "c"),
        ({"chat_template": 7, "tokenizer_config": {"chat_template": [None, {"name": "default", "template": 3}]}}, None),
        ({"tokenizer_config": "x"}, None),
    ],
)
def test_the_template_is_found_wherever_it_is_kept(metadata: dict[str, Any], source: str | None) -> None:
    assert chat_template_of(metadata) == source
