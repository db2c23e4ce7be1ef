"""What request bodies may hold, and that an error names the field."""

import msgspec
import pytest

from modelc.api.fields import SamplingFields, check_defaults, decode_fields, sampling_of
from modelc.errors import BadInputError
from modelc.sampling_ranges import MAX_COUNT

WRONG_FIELDS = [
    (b'{"max_tokens": "12"}', "max_tokens", "string"),
    (b'{"max_tokens": true}', "max_tokens", "boolean"),
    (b'{"max_tokens": 1.5}', "max_tokens", "integer"),
    (b'{"max_tokens": -2}', "max_tokens", ">= -1"),
    (b'{"temperature": -0.1}', "temperature", ">= 0"),
    (b'{"temperature": 1e999}', "temperature", "out of range"),
    (b'{"top_p": 1.01}', "top_p", "<= 1"),
    (b'{"min_p": [0.1]}', "min_p", "array"),
    (b'{"top_k": -2}', "top_k", ">= -1"),
    (b'{"repetition_penalty": 0}', "repetition_penalty", ">= 0.01"),
    (b'{"presence_penalty": 2.5}', "presence_penalty", "<= 2"),
    (b'{"seed": 9223372036854775808}', "seed", "9223372036854775807"),
    (b'{"seed": 123456789012345678901234567890}', "seed", "9223372036854775807"),
    (b'{"seed": -2}', "seed", ">= -1"),
    (b'{"stop": 3}', "stop", "string | array"),
    (b'{"stop": ["a", 3]}', "stop[1]", "string"),
    (b'{"logit_bias": {"a": 1}}', "logit_bias", "integer"),
    (b'{"logit_bias": {"1": "x"}}', "logit_bias", "number"),
    (b'{"logit_bias": {"1": 1e7}}', "logit_bias", "<="),
]
NOT_JSON = [
    b"",
    b" \n",
    b"{",
    b"nonsense",
    b'{"stop": "\xff\xfe"}',
    b'{"stop": "\\ud800"}',
    b'{"temperature": NaN}',
    b'{"temperature": Infinity}',
    b'{"temperature": -Infinity}',
    b'{"seed": 1} {}',
    b"[1, 2]",
    b'"text"',
    b'{"x": ' + b"[" * 100_000,
    b'{"x": ' + b'{"y":' * 100_000,
]


def fields_of(body: bytes) -> SamplingFields:
    return decode_fields(body, SamplingFields)


@pytest.mark.parametrize(("body", "param", "said"), WRONG_FIELDS, ids=[body.decode() for body, _, _ in WRONG_FIELDS])
def test_a_wrong_field_is_named_with_what_was_expected(body: bytes, param: str, said: str) -> None:
    with pytest.raises(BadInputError) as caught:
        fields_of(body)
    assert caught.value.param == param
    assert said in str(caught.value)
    assert "`" not in str(caught.value)


@pytest.mark.parametrize("body", NOT_JSON, ids=lambda body: repr(body[:20]))
def test_what_is_not_a_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(BadInputError, match="request body"):
        fields_of(body)


def test_a_missing_field_is_named_with_its_place() -> None:
    class Item(msgspec.Struct):
        id: int

    class Body(msgspec.Struct):
        items: list[Item]

    with pytest.raises(BadInputError) as caught:
        decode_fields(b"{}", Body)
    assert caught.value.param == "items"
    with pytest.raises(BadInputError) as caught:
        decode_fields(b'{"items": [{"id": 1}, {}]}', Body)
    assert caught.value.param == "items[1].id"


def test_unknown_fields_are_ignored() -> None:
    assert fields_of(b'{"no_such_field": 2, "seed": 5, "nested": {"a": [1e3, null]}}').seed == 5


def test_what_the_request_leaves_out_or_nulls_has_the_servers_default() -> None:
    sampling = sampling_of(fields_of(b'{"top_p": null, "min_p": 0.25}'), {"top_p": 0.5, "min_p": 0.1, "seed": 3}, 10)
    assert (sampling.top_p, sampling.min_p, sampling.seed) == (0.5, 0.25, 3)
    assert (sampling.max_tokens, sampling.temperature, sampling.repetition_penalty) == (128, 0.0, 1.0)


def test_every_sampling_field_arrives() -> None:
    body = (
        b'{"max_tokens": 7, "temperature": 0.5, "top_k": 40, "top_p": 0.9, "min_p": 0.05, "repetition_penalty": 1.1,'
        b'"presence_penalty": 0.2, "frequency_penalty": -0.3, "logit_bias": {"3": -100}, "seed": 0, "stop": ["a", "b"]}'
    )
    sampling = sampling_of(fields_of(body), {}, 10)
    assert (sampling.max_tokens, sampling.temperature, sampling.top_k, sampling.top_p) == (7, 0.5, 40, 0.9)
    assert (sampling.min_p, sampling.repetition_penalty) == (0.05, 1.1)
    assert (sampling.presence_penalty, sampling.frequency_penalty) == (0.2, -0.3)
    assert (dict(sampling.logit_bias), sampling.seed, sampling.stop) == ({3: -100.0}, 0, ("a", "b"))


def test_max_completion_tokens_wins() -> None:
    assert sampling_of(fields_of(b'{"max_tokens": 7, "max_completion_tokens": 3}'), {}, 10).max_tokens == 3
    assert sampling_of(fields_of(b'{"max_tokens": 7, "max_completion_tokens": null}'), {}, 10).max_tokens == 7


@pytest.mark.parametrize(("body", "defaults"), [(b'{"max_tokens": -1}', {}), (b"{}", {"max_tokens": -1})])
def test_minus_one_is_no_limit_of_tokens(body: bytes, defaults: dict[str, int]) -> None:
    assert sampling_of(fields_of(body), defaults, 10).max_tokens == MAX_COUNT


def test_a_byte_order_mark_is_no_fault() -> None:
    assert fields_of(b'\xef\xbb\xbf{"max_tokens": 7}').max_tokens == 7


def test_stop_may_be_one_string_and_empty_ones_stop_nothing() -> None:
    assert sampling_of(fields_of(b'{"stop": "END"}'), {}, 10).stop == ("END",)
    assert sampling_of(fields_of(b'{"stop": ["", "x"]}'), {}, 10).stop == ("x",)
    assert sampling_of(fields_of(b'{"stop": ""}'), {}, 10).stop == ()


def test_minus_one_asks_for_a_fresh_seed_and_no_top_k() -> None:
    sampling = sampling_of(fields_of(b'{"seed": -1, "top_k": -1}'), {"seed": 3, "top_k": 40}, 10)
    assert (sampling.seed, sampling.top_k) == (None, 0)


@pytest.mark.parametrize("token_id", [-1, 10])
def test_a_bias_for_a_token_that_does_not_exist_is_refused(token_id: int) -> None:
    with pytest.raises(BadInputError, match="0 to 9") as caught:
        sampling_of(fields_of(f'{{"logit_bias": {{"{token_id}": 1}}}}'.encode()), {}, 10)
    assert caught.value.param == "logit_bias"


def test_the_servers_defaults_are_held_to_the_same_ranges() -> None:
    check_defaults({"temperature": 0.7, "seed": 1, "stop": ("a",)})
    with pytest.raises(BadInputError) as caught:
        check_defaults({"temperature": -1.0})
    assert caught.value.param == "temperature"
