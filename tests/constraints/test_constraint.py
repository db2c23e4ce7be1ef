import pytest

from modelc.constraints import Constraint
from modelc.constraints.grammars import with_ascii_classes


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("yes|no", "regex"),
        ("root", "regex"),
        ("", "regex"),
        ("start", "regex"),
        ('root ::= "yes"', "gbnf"),
        ('# a comment\nws ::= " "\n  root  ::= ws', "gbnf"),
        ('start: "yes"', "lark"),
        ('%llguidance {}\nstart: "yes"', "lark"),
        ('A: "x"\nstart : A', "lark"),
        ("the start: of it", "regex"),
    ],
)
def test_the_syntax_is_told_by_its_first_rule(source: str, kind: str) -> None:
    assert Constraint.of_grammar(source).kind == kind


def test_the_order_of_a_schema_s_properties_stays() -> None:
    assert Constraint.of_schema({"b": 1, "a": "é"}).source == '{"b": 1, "a": "é"}'
    assert Constraint.of_schema('{"b":1}').source == '{"b":1}'


def test_the_field_does_not_make_another_constraint() -> None:
    assert Constraint("regex", "a", "grammar") == Constraint("regex", "a", "response_format")
    assert hash(Constraint("regex", "a", "grammar")) == hash(Constraint("regex", "a", "x"))


def test_classes_become_ascii_outside_and_inside_of_brackets() -> None:
    assert with_ascii_classes(r"\d+\w\s") == r"[0-9]+[0-9A-Za-z_][ \t\n\r\f\v]"
    assert with_ascii_classes(r"[\d.][^\w]") == r"[0-9.][^0-9A-Za-z_]"
    assert with_ascii_classes(r"\\d\D\]\d[") == r"\\d\D\][0-9]["
    assert with_ascii_classes("\\") == "\\"
