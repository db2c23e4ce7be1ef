"""Bodies of requests: decoding with errors that name the field, and the sampling fields every text endpoint takes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from modelc.errors import BadInputError, UnsupportedError

if TYPE_CHECKING:
    from modelc.runtime import Sampling

T = TypeVar("T")
MAX_STOPS = 256
MAX_BIAS = 1e6  # enough to force or ban a token; float32 still tells two such tokens apart


class SamplingFields(msgspec.Struct, kw_only=True):
    """How tokens are chosen; a field that is absent or null has the server's default."""

    max_tokens: Annotated[int, Meta(ge=0, le=2**31 - 1, description="most tokens to generate")] | None = None
    max_completion_tokens: Annotated[int, Meta(ge=0, le=2**31 - 1, description="wins over max_tokens")] | None = None
    temperature: Annotated[float, Meta(ge=0, le=100, description="0 takes the likeliest token")] | None = None
    top_k: Annotated[int, Meta(ge=-1, le=2**31 - 1, description="0 or -1 is off")] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1, description="0 is off")] | None = None
    min_p: Annotated[float, Meta(ge=0, le=1, description="0 is off")] | None = None
    repetition_penalty: Annotated[float, Meta(ge=0.01, le=100, description="1 is off")] | None = None
    presence_penalty: Annotated[float, Meta(ge=-2, le=2, description="0 is off")] | None = None
    frequency_penalty: Annotated[float, Meta(ge=-2, le=2, description="0 is off")] | None = None
    logit_bias: dict[int, Annotated[float, Meta(ge=-MAX_BIAS, le=MAX_BIAS)]] | None = None
    seed: Annotated[int, Meta(ge=-1, le=2**63 - 1, description="-1 or null: a fresh one")] | None = None
    stop: str | Annotated[list[str], Meta(max_length=MAX_STOPS)] | None = None


# Fields that this version does not act upon, with the values (as compact JSON) that ask for nothing.
NOT_YET: Mapping[str, frozenset[str]] = {
    "grammar": frozenset({"null", '""'}),
    "json_schema": frozenset({"null"}),
    "response_format": frozenset({"null", '{"type":"text"}'}),
    "tools": frozenset({"null", "[]"}),
    "tool_choice": frozenset({"null", '"none"', '"auto"'}),
    "functions": frozenset({"null", "[]"}),
    "function_call": frozenset({"null", '"none"', '"auto"'}),
    "logprobs": frozenset({"null", "false"}),
    "top_logprobs": frozenset({"null", "0"}),
    "echo": frozenset({"null", "false"}),
    "suffix": frozenset({"null", '""'}),
    "typical_p": frozenset({"null", "0", "0.0", "1", "1.0"}),
    "top_n_sigma": frozenset({"null", "0", "0.0", "-1", "-1.0"}),
    "dry_multiplier": frozenset({"null", "0", "0.0"}),
    "xtc_probability": frozenset({"null", "0", "0.0"}),
}
JSON_NAMES = {"int": "integer", "float": "number", "str": "string", "bool": "boolean"}


def decode_fields(body: bytes, shape: type[T]) -> T:
    """Decode a JSON body strictly into a struct; fields it does not know are ignored.

    Args:
        body: The bytes received.
        shape: The struct; where it takes sampling fields, those of `NOT_YET` are refused.

    Raises:
        BadInputError: Not a JSON object in UTF-8, or a field of the wrong type or out of range (`param` names it).
        UnsupportedError: A field asks for what this version does not do.
    """
    if not body.strip():
        raise BadInputError("the request body is empty", expected="a JSON object")
    try:
        fields = msgspec.json.decode(body, type=shape)
        if issubclass(shape, SamplingFields):
            _refuse_not_yet(msgspec.json.decode(body, type=dict[str, msgspec.Raw]))
    except msgspec.ValidationError as error:
        raise _wrong_field(str(error)) from None
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
        raise _wrong_field(str(error)) from None


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
    given = {
        "max_tokens": fields.max_tokens if fields.max_completion_tokens is None else fields.max_completion_tokens,
        "temperature": fields.temperature,
        "top_k": None if fields.top_k is None else max(fields.top_k, 0),
        "top_p": fields.top_p,
        "min_p": fields.min_p,
        "repetition_penalty": fields.repetition_penalty,
        "presence_penalty": fields.presence_penalty,
        "frequency_penalty": fields.frequency_penalty,
        "logit_bias": fields.logit_bias,
        "stop": None if stop is None else tuple(text for text in stop if text),
    }
    values = {**defaults, **{name: value for name, value in given.items() if value is not None}}
    if fields.seed is not None:
        values["seed"] = None if fields.seed < 0 else fields.seed
    return Sampling(**values)


def _refuse_not_yet(raw_fields: Mapping[str, msgspec.Raw]) -> None:
    for name in NOT_YET.keys() & raw_fields.keys():
        value = msgspec.json.encode(msgspec.json.decode(raw_fields[name])).decode()
        if value not in NOT_YET[name]:
            raise UnsupportedError(f"{name} is not supported in this version", param=name, hint="leave the field out")


def _wrong_field(message: str) -> BadInputError:
    """Turn the decoder's "Expected `int | null`, got `str` - at `$.max_tokens`" into an error that names the field."""
    fault, _, place = message.partition(" - at ")
    path = place.replace("`key` in ", "").strip("`").removeprefix("$").removeprefix(".").removesuffix("[...]")
    if missing := re.fullmatch(r"Object missing required field `(.*)`", fault):
        return BadInputError("a field is missing", param=f"{path}.{missing[1]}" if path else missing[1])
    if not path:
        return BadInputError("the request body is not a JSON object")
    if not fault.startswith("Expected "):
        return BadInputError("a field is wrong", param=path, got=fault[:1].lower() + fault[1:])
    names = re.sub(r"\w+", lambda word: JSON_NAMES.get(word[0], word[0]), fault.replace(" | null", ""))
    expected, _, got = names.replace("`", "").removeprefix("Expected ").partition(", got ")
    what = "a field has the wrong type" if got else "a field is out of range"
    return BadInputError(what, param=path, got=got or None, expected=expected)
