"""Fields that take one of a few words."""

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from modelc.api.chat_completions import ChatCompletionFields
from modelc.api.choices import choices_at
from modelc.api.embeddings import OpenAiEmbeddingsFields


@pytest.mark.parametrize(
    ("path", "choices"),
    [
        ("tool_choice", ["none", "auto", "required"]),
        ("tool_choice.type", ["function"]),
        ("tools[3].type", ["function"]),
        ("messages[0].tool_calls[12].type", ["function"]),
        ("response_format.type", ["text", "json_object", "json_schema"]),
        ("temperature", []),
        ("messages.role", []),
        ("nothing[0].like.it", []),
    ],
)
def test_the_words_that_a_field_takes_are_found_by_its_path(path: str, choices: list[str]) -> None:
    found = choices_at(ChatCompletionFields, path)
    assert set(found) == set(choices)
    assert len(found) == len(choices)


def test_they_are_told_where_another_one_was_given(client: TestClient[Litestar]) -> None:
    body = {"messages": [{"role": "user", "content": "hi"}], "tool_choice": "any"}
    error = client.post("/v1/chat/completions", json=body).json()["error"]
    assert error["param"] == "tool_choice"
    assert error["message"].startswith("no such choice: 'tool_choice': got 'any', expected ")
    assert choices_at(OpenAiEmbeddingsFields, "encoding_format") == ["base64", "float"]
