"""The requests: all endpoints, the ways to choose tokens, errors too. They fit every kind of model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TEXTS = (
    "The capital of France is",
    "Once upon a time",
    "1, 2, 3, 4,",
    "Zażółć gęślą jaźń 🦆 \n\t x",
)
# Fields of `Sampling` beside a seed.
SAMPLINGS: tuple[Mapping[str, Any], ...] = (
    {},
    {"temperature": 0.8},
    {"temperature": 1.3, "top_k": 20, "top_p": 0.9, "min_p": 0.02},
    {"temperature": 0.7, "repetition_penalty": 1.2, "presence_penalty": 0.5, "frequency_penalty": 0.3},
    {"temperature": 0.0, "logit_bias": {"11": -100, "13": 3}, "stop": [".", "\n\n"]},
)
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
TOOLS = [
    {
        "type": "function",
        "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
    }
]


@dataclass(frozen=True, slots=True)
class Request:
    """One request; `body` is what is sent as JSON, None for none."""

    name: str
    method: str
    path: str
    body: Mapping[str, Any] | None = None


def requests_for(n_inputs: int, max_tokens: int = 12) -> list[Request]:
    """All requests.

    Args:
        n_inputs: numbers that the model takes at `/infer`.
        max_tokens: length of answers.
    """
    given = [Request(f"GET {path}", "GET", path) for path in READ]
    posts: list[tuple[str, str, Mapping[str, Any]]] = [*_texts(max_tokens), *_numbers(n_inputs), *_wrong()]
    return given + [Request(f"{path} {what}", "POST", path, body) for path, what, body in posts]


READ = (
    "/health",
    "/info",
    "/props",
    "/api/version",
    "/v1/models",
    "/v1/models/nothing",
    "/tokenizer_info",
    "/schema",
    "/nowhere",
)

Post = tuple[str, str, Mapping[str, Any]]


def _texts(max_tokens: int) -> Sequence[Post]:
    posts: list[Post] = []
    for number, sampling in enumerate(SAMPLINGS):
        common = {"max_tokens": max_tokens, "seed": 100 + number, **sampling}
        text = TEXTS[number % len(TEXTS)]
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]
        posts += [
            ("/complete", f"sampling {number}", {"prompt": text, **common}),
            ("/chat", f"sampling {number}", {"messages": messages, **common}),
            ("/chat/stream", f"sampling {number}", {"messages": messages, **common}),
            (
                "/v1/chat/completions",
                f"sampling {number}",
                {"messages": messages, "logprobs": True, "top_logprobs": 4, "n": 2, **common},
            ),
            (
                "/v1/chat/completions",
                f"sampling {number}, streamed",
                {"messages": messages, "stream": True, "stream_options": {"include_usage": True}, **common},
            ),
            (
                "/v1/completions",
                f"sampling {number}",
                {"prompt": list(TEXTS), "logprobs": 3, **common, "max_tokens": max_tokens // 2},
            ),
            ("/v1/completions", f"sampling {number}, streamed", {"prompt": text, "stream": True, **common}),
        ]
    user = [{"role": "user", "content": "Tell me about a person."}]
    limit = {"max_tokens": 4 * max_tokens, "seed": 7, "temperature": 0.9}
    posts += [
        ("/v1/completions", "scored", {"prompt": TEXTS[0], "echo": True, "logprobs": 2, "max_tokens": 0, "seed": 1}),
        ("/v1/completions", "echo and suffix", {"prompt": TEXTS[1], "echo": True, "suffix": "!", "seed": 1}),
        ("/v1/completions", "best of", {"prompt": TEXTS[1], "n": 2, "best_of": 3, **limit, "max_tokens": max_tokens}),
        ("/v1/completions", "tokens", {"prompt": [1, 2, 3, 4, 5], "seed": 1, "max_tokens": max_tokens}),
        ("/complete", "a regular expression", {"prompt": "Number:", "grammar": "[0-9]{3}-[a-f]{2,4}", **limit}),
        ("/complete", "a schema", {"prompt": "Person:", "json_schema": SCHEMA, **limit}),
        ("/v1/chat/completions", "an object", {"messages": user, "response_format": {"type": "json_object"}, **limit}),
        (
            "/v1/chat/completions",
            "a schema",
            {
                "messages": user,
                "response_format": {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA}},
                **limit,
            },
        ),
        (
            "/v1/chat/completions",
            "a tool",
            {"messages": user, "tools": TOOLS, "tool_choice": "required", **limit},
        ),
        (
            "/chat/stream",
            "a thought that goes on, and a schema",
            {"messages": [*user, {"role": "assistant", "content": "<think>She"}], "json_schema": SCHEMA, **limit},
        ),
    ]
    return posts


def _numbers(n_inputs: int) -> Sequence[Post]:
    vector = [((37 * i) % 101 - 50) / 50 for i in range(n_inputs)]
    rows = [[((31 * i + 7 * row) % 97 - 48) / 48 for i in range(n_inputs)] for row in range(3)]
    return [
        ("/infer", "one vector", {"input": vector}),
        ("/infer", "three vectors", {"inputs": rows}),
        ("/embeddings", "one text", {"input": TEXTS[0]}),
        ("/embeddings", "texts", {"inputs": list(TEXTS)}),
        ("/v1/embeddings", "texts", {"input": list(TEXTS)}),
        ("/v1/embeddings", "as base64", {"input": TEXTS[3], "encoding_format": "base64"}),
        ("/v1/embeddings", "tokens", {"input": [1, 2, 3]}),
        ("/tokenize", "a text", {"input": TEXTS[3]}),
        ("/v1/tokenize", "texts", {"inputs": list(TEXTS), "add_special": False, "parse_special": True}),
        ("/detokenize", "tokens", {"tokens": [*range(40), 10**9]}),
    ]


def _wrong() -> Sequence[Post]:
    return [
        ("/complete", "a prompt that is a number", {"prompt": 5}),
        ("/complete", "a temperature that is a text", {"prompt": "x", "temperature": "hot"}),
        ("/complete", "a bad expression", {"prompt": "x", "grammar": "[a-", "seed": 1}),
        ("/v1/chat/completions", "no messages", {"messages": []}),
        ("/v1/completions", "best of less than n", {"prompt": "x", "n": 3, "best_of": 1}),
        ("/infer", "no numbers", {"input": ["a"]}),
        ("/lora/load", "no such file", {"path": "/nowhere/adapter.safetensors"}),
    ]


def encoded(body: Mapping[str, Any] | None) -> bytes | None:
    """The bytes that are sent."""
    return None if body is None else json.dumps(body).encode()
