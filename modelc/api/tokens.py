"""`/tokenize`, `/detokenize` and `/tokenizer_info`, also under `/v1`."""

from __future__ import annotations

import msgspec
from litestar import get, post
from litestar.types import ASGIApp
from msgspec import UNSET, UnsetType

from modelc.api.answers import json_answer
from modelc.api.off_loop import tokenizing
from modelc.api.request import ApiRequest
from modelc.errors import BadInputError


class TokenizeFields(msgspec.Struct, kw_only=True):
    """One text, or several; `prompt` is another name of `input`, `add_special_tokens` of `add_special`."""

    input: str | None = None
    prompt: str | None = None
    inputs: list[str] | None = None
    add_special: bool | None = None
    add_special_tokens: bool | None = None
    parse_special: bool | None = None


class TokenizeAnswer(msgspec.Struct, kw_only=True):
    """Token ids of the text (`tokens`) or of each text (`tokens_batch`); `count` is over all."""

    tokens: list[int] | UnsetType = UNSET
    tokens_batch: list[list[int]] | UnsetType = UNSET
    count: int


class TokenizerInfo(msgspec.Struct):
    """Texts of the tokenizer's special tokens, null where it has none, and the model's chat template."""

    bos_token: str | None
    eos_token: str | None
    pad_token: str | None
    add_bos_token: bool
    vocab_size: int
    model_max_length: int | None
    chat_template: str | None


class DetokenizeFields(msgspec.Struct):
    """Token ids; those outside the vocabulary are skipped."""

    tokens: list[int]


class DetokenizeAnswer(msgspec.Struct):
    """The text of the tokens, under both names that clients know."""

    text: str
    prompt: str


@post(["/tokenize", "/v1/tokenize"], status_code=200, opt={"body": TokenizeFields, "answer": TokenizeAnswer})
async def tokenize(request: ApiRequest) -> ASGIApp:
    """Turn text into token ids.

    `add_special` (default true) adds what the model expects around a text, `parse_special` recognises special tokens
    written in it: by default not in `input`, and in `prompt`, as completions do.
    """
    fields = await request.decode(TokenizeFields)
    text = fields.prompt if fields.input is None else fields.input
    if text is None and fields.inputs is None:
        raise BadInputError("a field is missing", param="input", expected="a string, or a list of strings in 'inputs'")
    add_special = fields.add_special_tokens if fields.add_special is None else fields.add_special
    is_prompt = fields.input is None and fields.prompt is not None
    parse_special = is_prompt if fields.parse_special is None else fields.parse_special
    options = {"add_special": add_special is not False, "parse_special": parse_special is True}
    texts = [text] if text is not None else fields.inputs or []
    model = request.loaded
    batch = await tokenizing(request, lambda: [model.tokenize(each, **options) for each in texts])
    count = sum(len(ids) for ids in batch)
    if text is not None:
        return json_answer(TokenizeAnswer(tokens=batch[0], count=count))
    return json_answer(TokenizeAnswer(tokens_batch=batch, count=count))


@get(["/tokenizer_info", "/v1/tokenizer_info"], opt={"answer": TokenizerInfo})
async def tokenizer_info(request: ApiRequest) -> ASGIApp:
    """Tell what evaluation harnesses ask of a tokenizer."""
    model = request.loaded
    tokenizer = model.tokenizer
    pad = b"" if tokenizer.pad_id is None else tokenizer.token_bytes(tokenizer.pad_id)
    info = TokenizerInfo(
        bos_token=tokenizer.bos_token or None,
        eos_token=tokenizer.eos_token or None,
        pad_token=pad.decode(errors="replace") or None,
        add_bos_token=tokenizer.add_bos,
        vocab_size=model.vocab_size,
        model_max_length=model.n_ctx,
        chat_template=model.chat_template,
    )
    return json_answer(info)


@post(["/detokenize", "/v1/detokenize"], status_code=200, opt={"body": DetokenizeFields, "answer": DetokenizeAnswer})
async def detokenize(request: ApiRequest) -> ASGIApp:
    """Turn token ids into text."""
    fields = await request.decode(DetokenizeFields)
    model = request.loaded
    known = [token_id for token_id in fields.tokens if 0 <= token_id < model.vocab_size]
    text = await tokenizing(request, lambda: model.detokenize(known))
    return json_answer(DetokenizeAnswer(text, text))
