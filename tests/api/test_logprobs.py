"""Log-probabilities over HTTP: both of OpenAI's forms, of prompts and answers, streamed and whole."""

import json
import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from modelc.api.logprobs import TextLogprobsWriter, content_logprobs
from modelc.runtime import LanguageModel, TokenLogprob
from tests.runtime.tiny_model import model_of

PROMPT = [72, 105, 195, 169, 32, 104]  # "Hié h"
URL = "/v1/completions"


@pytest.fixture(scope="module")
def tiny() -> Iterator[LanguageModel]:
    with model_of() as model:
        yield model


@pytest.fixture
def api(client_of: Any, tiny: LanguageModel) -> TestClient[Litestar]:
    client: TestClient[Litestar] = client_of(tiny)
    return client


def post(api: TestClient[Litestar], path: str, **fields: Any) -> Any:
    response = api.post(path, json=fields)
    assert response.status_code == 200, response.text
    if not fields.get("stream"):
        return response.json()
    *events, done, _ = response.text.split("\n\n")
    assert done == "data: [DONE]"
    return [json.loads(event.removeprefix("data: ")) for event in events]


def texts(model: LanguageModel, ids: list[int]) -> list[str]:
    spelled = [model.tokenizer.token_bytes(token) for token in ids]
    return [s.decode() if s.isascii() else "bytes:" + "".join(f"\\x{b:02x}" for b in s) for s in spelled]


def test_echo_with_no_tokens_scores_the_prompt(api: TestClient[Litestar], tiny: LanguageModel) -> None:
    answer = post(api, URL, prompt=PROMPT, max_tokens=0, echo=True, logprobs=3)
    (choice,) = answer["choices"]
    scores = tiny.score(PROMPT, 3)
    assert (choice["text"], choice["finish_reason"]) == ("Hié h", "length")
    found = choice["logprobs"]
    assert set(found) == {"tokens", "token_logprobs", "top_logprobs", "text_offset"}
    assert found["tokens"] == texts(tiny, PROMPT)
    assert found["token_logprobs"] == [None, *(score.logprob for score in scores)]
    assert found["text_offset"] == [0, 1, 2, 3, 3, 4]  # the second byte of é begins no character
    assert found["top_logprobs"][0] is None
    for top, score in zip(found["top_logprobs"][1:], scores, strict=True):
        assert 3 <= len(top) <= 4  # and the token itself
        assert max(top.values()) == score.top[0][1]
        assert score.logprob in top.values()
    assert answer["usage"]["completion_tokens"] == 0


def test_prompts_are_scored_side_by_side_with_the_bits_they_have_alone(
    api: TestClient[Litestar], tiny: LanguageModel
) -> None:
    prompts = [PROMPT, PROMPT[:1], [*PROMPT, *range(40, 140)], PROMPT]
    answer = post(api, URL, prompt=prompts, max_tokens=1, echo=True, logprobs=0, seed=1)
    for prompt, choice in zip(prompts, answer["choices"], strict=True):
        expected = [None, *(score.logprob for score in tiny.score(prompt))]
        assert choice["logprobs"]["token_logprobs"][: len(prompt)] == expected
        assert len(choice["logprobs"]["tokens"]) == len(prompt) + 1  # the generated one too, whatever it is
        assert choice["logprobs"]["top_logprobs"] is None


def test_of_an_answer_offsets_begin_with_it_and_of_an_echo_they_go_on(api: TestClient[Litestar]) -> None:
    fields = {"prompt": "Hi", "max_tokens": 12, "logprobs": 2, "temperature": 1.0, "seed": 4}
    (alone,) = post(api, URL, **fields)["choices"]
    (echoed,) = post(api, URL, **fields, echo=True)["choices"]
    assert echoed["text"] == "Hi" + alone["text"]
    assert alone["logprobs"]["text_offset"][0] == 0
    assert echoed["logprobs"]["text_offset"][2:] == [2 + offset for offset in alone["logprobs"]["text_offset"]]
    for name in ("tokens", "token_logprobs", "top_logprobs"):
        assert echoed["logprobs"][name][2:] == alone["logprobs"][name]


@pytest.mark.parametrize("logprobs", [None, 2, True])
def test_streamed_pieces_joined_are_the_whole_and_the_prompt_is_the_first(
    api: TestClient[Litestar], logprobs: Any
) -> None:
    fields = {"prompt": ["Hi", "Hm"], "max_tokens": 9, "echo": True, "suffix": "!", "seed": 3, "temperature": 1.0}
    fields |= {"logprobs": logprobs, "top_logprobs": 1, "n": 2}
    whole = post(api, URL, **fields)
    chunks = post(api, URL, **fields, stream=True)
    for choice in whole["choices"]:
        pieces = [c for chunk in chunks for c in chunk["choices"] if c["index"] == choice["index"]]
        assert pieces[0]["text"] == ("Hi" if choice["index"] < 2 else "Hm")
        assert [piece["finish_reason"] for piece in pieces[:-1]] == [None] * (len(pieces) - 1)
        assert "".join(piece["text"] for piece in pieces) == choice["text"]
        assert choice["text"].endswith("!")
        if logprobs is None:
            assert choice["logprobs"] is None
            continue
        for name, values in choice["logprobs"].items():
            parts = [piece["logprobs"][name] for piece in pieces if piece["logprobs"] is not None]
            assert values == (None if name == "refusal" else [value for part in parts for value in part])


def test_the_boolean_form_has_what_chats_have(api: TestClient[Litestar], tiny: LanguageModel) -> None:
    (choice,) = post(api, URL, prompt=PROMPT, max_tokens=0, echo=True, logprobs=True, top_logprobs=2)["choices"]
    content = choice["logprobs"]["content"]
    assert [each["bytes"] for each in content] == [[token] for token in PROMPT]
    assert content[0] == {"token": "H", "logprob": None, "bytes": [72], "top_logprobs": []}
    assert [each["logprob"] for each in content[1:]] == [score.logprob for score in tiny.score(PROMPT)]
    assert all(len(each["top_logprobs"]) == 2 for each in content[1:])


@pytest.mark.parametrize("asked", [0, 3, 99, -1])
def test_chats_have_as_many_likeliest_tokens_as_allowed(api: TestClient[Litestar], asked: int) -> None:
    fields = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5, "logprobs": True, "top_logprobs": asked}
    (choice,) = post(api, "/v1/chat/completions", **fields)["choices"]
    content = choice["logprobs"]["content"]
    assert bytes(b for each in content for b in each["bytes"]).decode(errors="replace") == choice["message"]["content"]
    for each in content:
        top = each["top_logprobs"]
        assert len(top) == min(max(asked, 0), 20)
        assert sorted(top, key=lambda t: -t["logprob"]) == top
        assert not top or top[0]["logprob"] >= each["logprob"]
    chunks = post(api, "/v1/chat/completions", **fields, stream=True)
    streamed = [c["logprobs"] for chunk in chunks for c in chunk["choices"] if c["logprobs"] is not None]
    assert [each for part in streamed for each in part["content"]] == content


def test_sampling_does_not_change_them(api: TestClient[Litestar]) -> None:
    fields = {"prompt": PROMPT, "max_tokens": 6, "logprobs": 5}
    greedy = post(api, URL, **fields)["choices"][0]
    biased = {"temperature": 2.0, "seed": 9, "repetition_penalty": 1.3, "logit_bias": {"65": 3}, "top_k": 50}
    drawn = post(api, URL, **fields, **biased)["choices"][0]["logprobs"]
    assert drawn["top_logprobs"][0].items() >= dict(list(greedy["logprobs"]["top_logprobs"][0].items())[:5]).items()


@pytest.mark.parametrize("fields", [{}, {"logprobs": None}, {"logprobs": False, "top_logprobs": 3}])
def test_not_asked_for_they_are_null(api: TestClient[Litestar], fields: dict[str, Any]) -> None:
    assert post(api, URL, prompt="a", max_tokens=2, **fields)["choices"][0]["logprobs"] is None
    chat = post(api, "/v1/chat/completions", messages=[{"role": "user", "content": "a"}], max_tokens=2, **fields)
    assert chat["choices"][0]["logprobs"] is None


@pytest.mark.parametrize(
    ("path", "name", "value"),
    [
        (URL, "logprobs", "5"),
        (URL, "logprobs", 1.5),
        (URL, "echo", 1),
        (URL, "suffix", 3),
        (URL, "top_logprobs", "a"),
        ("/v1/chat/completions", "logprobs", 2),
        ("/v1/chat/completions", "top_logprobs", 2.5),
    ],
)
def test_wrong_types_are_named(api: TestClient[Litestar], path: str, name: str, value: Any) -> None:
    response = api.post(path, json={"prompt": "a", "messages": [{"role": "user", "content": "a"}], name: value})
    assert (response.status_code, response.json()["error"]["param"]) == (400, name)


def test_suffix_comes_behind_the_completion(api: TestClient[Litestar]) -> None:
    plain = post(api, URL, prompt="Hi", max_tokens=3)["choices"][0]["text"]
    assert post(api, URL, prompt="Hi", max_tokens=3, suffix="?!")["choices"][0]["text"] == plain + "?!"
    assert post(api, URL, prompt="Hi", max_tokens=3, suffix="?!", echo=True)["choices"][0]["text"] == f"Hi{plain}?!"
    assert post(api, URL, prompt="Hi", max_tokens=0, echo=True)["choices"][0]["text"] == "Hi"


def test_a_bos_that_the_text_does_not_have_takes_no_characters_nor_does_the_space_that_goes_with_it() -> None:
    spelled = {1: b"<s>", 5: b" Hi", 6: b" you"}
    tokenizer: Any = SimpleNamespace(
        bos_id=1,
        bos_token="<s>",
        special_ids=frozenset({1}),
        token_bytes=spelled.__getitem__,
        first_token_bytes=lambda token: spelled[token].lstrip(),
    )
    found = [TokenLogprob(5, -1.0), TokenLogprob(6, -2.0)]
    piece = TextLogprobsWriter(tokenizer, 0).prompt([1, 5, 6], found, "Hi you")
    assert (piece.tokens, piece.text_offset) == (["<s>", " Hi", " you"], [0, 0, 2])
    piece = TextLogprobsWriter(tokenizer, 0).prompt([1, 5, 6], found, "<s> Hi you")
    assert piece.text_offset == [0, 3, 6]


def test_minus_infinity_is_a_number_that_json_has() -> None:
    tokenizer: Any = SimpleNamespace(token_bytes=lambda token: b"a", special_ids=frozenset(), bos_id=None, bos_token="")
    found = [TokenLogprob(0, -math.inf, ((0, -math.inf),))]
    (content,) = content_logprobs(tokenizer, found).content
    assert (content.logprob, content.top_logprobs[0].logprob) == (-9999.0, -9999.0)
    piece = TextLogprobsWriter(tokenizer, 1).answer(found)
    assert (piece.token_logprobs, piece.top_logprobs) == ([-9999.0], [{"a": -9999.0}])
