"""Bodies of requests: decoding with errors that name the field, and the sampling fields every text endpoint takes."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from modelc.api.answer_format import FormatFields
from modelc.api.choices import choices_at
from modelc.errors import BadInputError
from modelc.sampling_ranges import (
    MAX_BIAS,
    MAX_BREAKER_CHARS,
    MAX_BREAKERS,
    MAX_COUNT,
    MAX_SEED,
    MAX_STOPS,
    RANGES,
)

if TYPE_CHECKING:
    from modelc.runtime import Sampling

T = TypeVar("T")
NO_LIMIT = -1  # of tokens, as llama.cpp's server says it

TokenLimit = Annotated[int, Meta(ge=NO_LIMIT, le=MAX_COUNT, description="most tokens to generate; -1: no limit")]


def within(name: str, description: str = "0 is off") -> Meta:
    """Return the range of a sampling value, and what it means."""
    low, high, is_integer = RANGES[name]
    return Meta(ge=int(low) if is_integer else low, le=int(high) if is_integer else high, description=description)


class SamplingFields(FormatFields, kw_only=True):
    """How tokens are chosen; a field that is absent or null has the server's default."""

    max_tokens: TokenLimit | None = None
    max_completion_tokens: Annotated[TokenLimit, Meta(description="wins over max_tokens")] | None = None
    temperature: Annotated[float, within("temperature", "0 takes the likeliest token")] | None = None
    top_k: Annotated[int, Meta(ge=-1, le=MAX_COUNT, description="0 or -1 is off")] | None = None
    top_p: Annotated[float, within("top_p")] | None = None
    min_p: Annotated[float, within("min_p")] | None = None
    typical_p: Annotated[float, within("typical_p", "0 or 1 is off")] | None = None
    top_n_sigma: Annotated[float, within("top_n_sigma", "0 or -1 is off")] | None = None
    xtc_probability: Annotated[float, within("xtc_probability")] | None = None
    xtc_threshold: Annotated[float, within("xtc_threshold", "above 0.5 is off")] | None = None
    mirostat: Annotated[int, within("mirostat", "1 or 2, its version; 0 is off")] | None = None
    mirostat_tau: Annotated[float, within("mirostat_tau", "its surprise in bits")] | None = None
    mirostat_eta: Annotated[float, within("mirostat_eta", "how fast it learns")] | None = None
    repetition_penalty: Annotated[float, within("repetition_penalty", "1 is off")] | None = None
    presence_penalty: Annotated[float, within("presence_penalty")] | None = None
    frequency_penalty: Annotated[float, within("frequency_penalty")] | None = None
    dry_multiplier: Annotated[float, within("dry_multiplier")] | None = None
    dry_base: Annotated[float, within("dry_base")] | None = None
    dry_allowed_length: Annotated[int, within("dry_allowed_length", "longest repetition that is free")] | None = None
    dry_penalty_last_n: Annotated[int, within("dry_penalty_last_n", "-1 are all tokens, 0 is off")] | None = None
    dry_sequence_breakers: (
        Annotated[list[Annotated[str, Meta(max_length=MAX_BREAKER_CHARS)]], Meta(max_length=MAX_BREAKERS)] | None
    ) = None
    logit_bias: dict[int, Annotated[float, Meta(ge=-MAX_BIAS, le=MAX_BIAS)]] | None = None
    seed: Annotated[int, Meta(ge=-1, le=MAX_SEED, description="-1 or null: a fresh one")] | None = None
    stop: str | Annotated[list[str], Meta(max_length=MAX_STOPS)] | None = None


JSON_NAMES = {"int": "integer", "float": "number", "str": "string", "bool": "boolean"}


def decode_fields(body: bytes, shape: type[T]) -> T:
    """Decode a JSON body strictly into a struct; fields it does not know are ignored.

    Args:
        body: The bytes received.
        shape: The struct.

    Raises:
        BadInputError: Not a JSON object in UTF-8, or a field of the wrong type or out of range (`param` names it).
    """
    body = body.removeprefix(codecs.BOM_UTF8)  # some clients write one, and JSON lets it be ignored
    if not body.strip():
        raise BadInputError("the request body is empty", expected="a JSON object")
    try:
        fields = msgspec.json.decode(body, type=shape)
    except msgspec.ValidationError as error:
        raise _wrong_field(str(error), shape) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = str(error).removeprefix("JSON is malformed: ")
        raise BadInputError("the request body is not valid JSON in UTF-8", got=reason) from None
    except RecursionError:
        raise BadInputError("the request body is nested too deeply") from None
    return fields


def check_defaults(defaults: Mapping[str, Any]) -> None:
    """Hold the server's own sampling values to what requests are held to.

    Raises:
        BadInputError: A value of the wrong type or out of range (`param` names it).
    """
    try:
        msgspec.convert(dict(defaults), SamplingFields)
    except msgspec.ValidationError as error:
        raise _wrong_field(str(error), SamplingFields) from None


def sampling_of(fields: SamplingFields, defaults: Mapping[str, Any], vocab_size: int) -> Sampling:
    """Return the sampling that a request asks for.

    Args:
        fields: The request's.
        defaults: Values of the server for what the request leaves out.
        vocab_size: Tokens of the model; a bias for any other is refused.

    Raises:
        BadInputError: `logit_bias` names a token that does not exist.
    """
    from modelc.runtime import Sampling  # late: the engine takes long to import, and here it is loaded

    for token_id in fields.logit_bias or {}:
        if not 0 <= token_id < vocab_size:
            raise BadInputError("no such token", param="logit_bias", got=token_id, expected=f"0 to {vocab_size - 1}")
    stop = [fields.stop] if isinstance(fields.stop, str) else fields.stop
    given = {name: getattr(fields, name) for name in RANGES.keys() - {"max_tokens", "top_logprobs"}}
    given |= {
        "max_tokens": fields.max_tokens if fields.max_completion_tokens is None else fields.max_completion_tokens,
        "top_k": None if fields.top_k is None else max(fields.top_k, 0),
        "dry_sequence_breakers": fields.dry_sequence_breakers,
        "logit_bias": fields.logit_bias,
        "stop": None if stop is None else tuple(text for text in stop if text),
    }
    values = {**defaults, **{name: value for name, value in given.items() if value is not None}}
    if values.get("max_tokens") == NO_LIMIT:
        values["max_tokens"] = MAX_COUNT
    if fields.seed is not None:
        values["seed"] = None if fields.seed < 0 else fields.seed
    return Sampling(**values)


def _wrong_field(message: str, shape: type) -> BadInputError:
    """Turn the decoder's "Expected `int | null`, got `str` - at `$.max_tokens`" into an error that names the field."""
    fault, _, place = message.partition(" - at ")
    path = place.replace("`key` in ", "").strip("`").removeprefix("$").removeprefix(".").removesuffix("[...]")
    if missing := re.fullmatch(r"Object missing required field `(.*)`", fault):
        return BadInputError("a field is missing", param=f"{path}.{missing[1]}" if path else missing[1])
    if not path:
        return BadInputError("the request body is not a JSON object")
    if choice := re.fullmatch(r"Invalid enum value (.*)", fault):
        return BadInputError("no such choice", param=path, got=choice[1], expected=" or ".join(choices_at(shape, path)))
    if not fault.startswith("Expected "):
        return BadInputError("a field is wrong", param=path, got=fault[:1].lower() + fault[1:])
    names = re.sub(r"\w+", lambda word: JSON_NAMES.get(word[0], word[0]), fault.replace(" | null", ""))
    expected, _, got = names.replace("`", "").removeprefix("Expected ").partition(", got ")
    what = "a field has the wrong type" if got else "a field is out of range"
    return BadInputError(what, param=path, got=got or None, expected=expected)
