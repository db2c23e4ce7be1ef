"""What an answer must look like, as requests say it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["regex", "gbnf", "lark", "json_schema", "json_object"]
_GBNF = re.compile(r"^[ \t]*root[ \t]*::=", re.MULTILINE)
_LARK = re.compile(r"^[ \t]*(%llguidance\b|start[ \t]*:)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Constraint:
    """The language of an answer: what ends by itself is in it, what is cut short begins something that is.

    Attributes:
        kind: how `source` is written.
        source: a regular expression for the whole answer, a grammar, or a JSON schema as JSON text; nothing for
            `json_object`, which is any JSON object.
        param: the request's field that it came from, for errors.
        after: text behind which the constrained text begins, as `</think>`; what comes before it is free. Empty: the
            whole answer is constrained.
        opener: text with which an answer may begin that has `after`, as `<think>`; one that begins otherwise is
            constrained as a whole. Empty: each answer has `after`.
    """

    kind: Kind
    source: str = ""
    param: str = field(default="grammar", compare=False)
    after: str = ""
    opener: str = ""

    @classmethod
    def of_grammar(cls, source: str, param: str = "grammar") -> Constraint:
        """A regular expression, unless it looks like GBNF (`root ::= …`) or Lark (`start: …`)."""
        kind: Kind = "gbnf" if _GBNF.search(source) else "lark" if _LARK.search(source) else "regex"
        return cls(kind, source, param)

    @classmethod
    def of_schema(cls, schema: Any, param: str = "json_schema") -> Constraint:
        """A JSON schema, as JSON text or parsed (the order of properties counts)."""
        source = schema if isinstance(schema, str) else json.dumps(schema, ensure_ascii=False)
        return cls("json_schema", source, param)
