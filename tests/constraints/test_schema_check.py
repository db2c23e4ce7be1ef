import contextlib
import json
import time
from typing import Any

import pytest

from modelc.constraints import SchemaCheck
from modelc.errors import BadInputError


def mismatch(schema: Any, answer: str) -> str | None:
    return SchemaCheck(json.dumps(schema)).mismatch(answer)


def test_a_match_has_nothing_wrong() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    assert mismatch(schema, '{"a": 1}') is None
    assert "'x' is not of type 'integer'" in str(mismatch(schema, '{"a": "x"}'))
    assert "'a' is a required property" in str(mismatch(schema, "{}"))
    assert "not JSON" in str(mismatch(schema, '{"a": 1'))


def test_multiples_are_exact() -> None:
    assert mismatch({"multipleOf": 0.01}, "0.07") is None
    assert mismatch({"multipleOf": 0.01}, "0.075") is not None
    assert mismatch({"multipleOf": 3}, "9") is None


def test_properties_by_pattern() -> None:
    schema = {"patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": False}
    assert mismatch(schema, '{"ab": 1}') is None
    assert mismatch(schema, '{"ab": "x"}') is not None
    assert "not a property" in str(mismatch(schema, '{"b": 1}'))
    assert mismatch({"additionalProperties": {"type": "null"}}, '{"b": 1}') is not None


@pytest.mark.parametrize(
    ("schema", "where"),
    [({"type": 5}, "json_schema/type"), ({"properties": {"a": {"minimum": "x"}}}, "properties/a/minimum")],
)
def test_what_is_no_schema_is_refused_with_the_place(schema: Any, where: str) -> None:
    with pytest.raises(BadInputError, match="not a JSON schema") as caught:
        mismatch(schema, "{}")
    assert where in str(caught.value.param)


def test_hostile_schemas_take_bounded_time() -> None:
    start = time.perf_counter()
    branching: dict[str, Any] = {
        f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 1}"}]} for i in range(40)
    }
    for schema in ({"$ref": "#/$defs/d0", "$defs": branching | {"d40": {}}}, {"$ref": "#"}):
        with pytest.raises(BadInputError, match="too complex to be checked"):
            mismatch(schema, "1")
    with pytest.raises(BadInputError, match="leads nowhere"):
        mismatch({"$ref": "http://localhost:1/x"}, "1")
    with contextlib.suppress(BadInputError):
        assert mismatch({"pattern": "^(a+)+$"}, f'"{"a" * 40}!"') is not None
    assert time.perf_counter() - start < 10
