"""Whether a finished answer matches its JSON schema: a second opinion, by `jsonschema`, in bounded time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from modelc.constraints.grammars import parsed_schema
from modelc.errors import BadInputError

MAX_REFERENCES = 10_000  # followed in one check: a chain of them that branches is exponential
PATTERN_S = 0.2

Check = Callable[[Any, Any, Any, Any], Iterator[Any] | None]


class SchemaCheck:
    """Checks answers against one schema. References to other documents are not fetched.

    Args:
        source: the schema as JSON text.
        param: the request's field that it came from, for errors.

    Raises:
        BadInputError: it is no schema.
    """

    def __init__(self, source: str, param: str = "json_schema") -> None:
        from jsonschema import Draft202012Validator, SchemaError
        from jsonschema.validators import extend, validator_for
        from referencing import Registry

        schema = parsed_schema(source, param)
        kind = validator_for(schema, default=Draft202012Validator)
        try:
            kind.check_schema(schema)
        except SchemaError as error:
            place = "/".join(map(str, error.absolute_path))
            raise BadInputError("not a JSON schema", param=f"{param}/{place}".rstrip("/"), got=error.message) from None
        except RecursionError:
            raise BadInputError("the schema is nested too deeply", param=param) from None
        self._param = param
        self._references = 0
        checks: dict[str, Check] = {
            "$ref": self._counted(kind.VALIDATORS["$ref"]),
            "pattern": _pattern,
            "patternProperties": _pattern_properties,
            "additionalProperties": _additional_properties,
            "multipleOf": _multiple_of,
        }
        self._validator = extend(kind, checks)(schema, registry=Registry())

    def mismatch(self, answer: str) -> str | None:
        """What is wrong with an answer, None where it matches.

        Raises:
            BadInputError: the schema is too complex to be checked, or refers to what is not there.
        """
        from jsonschema import ValidationError
        from referencing.exceptions import Unresolvable

        self._references = 0
        try:
            value = json.loads(answer)
            self._validator.validate(value)
        except ValidationError as error:
            return f"{error.json_path}: {error.message}"
        except ValueError as error:
            return f"not JSON: {error}"
        except Unresolvable as error:
            raise BadInputError("a reference leads nowhere", param=self._param, got=str(error)) from None
        except (RecursionError, TimeoutError, _TooMuchError):
            raise BadInputError("the schema is too complex to be checked", param=self._param) from None
        return None

    def _counted(self, check: Check) -> Check:
        def follow(validator: Any, target: Any, instance: Any, schema: Any) -> Iterator[Any] | None:
            self._references += 1
            if self._references > MAX_REFERENCES:
                raise _TooMuchError
            return check(validator, target, instance, schema)

        return follow


class _TooMuchError(Exception):
    pass


def _searches(pattern: str, text: str) -> bool:
    import regex

    return regex.search(pattern, text, timeout=PATTERN_S) is not None


def _pattern(validator: Any, pattern: Any, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if isinstance(instance, str) and not _searches(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, dict):
        for pattern, part in patterns.items():
            for name, value in instance.items():
                if _searches(pattern, name):
                    yield from validator.descend(value, part, path=name, schema_path=pattern)


def _additional_properties(validator: Any, rest: Any, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if isinstance(instance, dict):
        known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for name, value in instance.items():
            if name not in known and not any(_searches(pattern, name) for pattern in patterns):
                if rest is False:
                    yield ValidationError(f"{name!r} is not a property that the schema has")
                else:
                    yield from validator.descend(value, rest, path=name)


def _multiple_of(validator: Any, factor: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """In exact arithmetic: by floats, 0.07 is no multiple of 0.01."""
    from jsonschema import ValidationError

    if validator.is_type(instance, "number") and Fraction(repr(instance)) % Fraction(repr(factor)):
        yield ValidationError(f"{instance!r} is not a multiple of {factor!r}")
