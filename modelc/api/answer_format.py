"""What an answer must look like: the fields that say it, and what follows from them for model and answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from modelc.constraints import Constraint, SchemaCheck
from modelc.errors import BadInputError
from modelc.text import with_system

Schema = dict[str, Any] | bool
MAX_TOLD_CHARS = 8192  # of a schema that the model is told: reading it takes time


class NamedSchema(msgspec.Struct, kw_only=True):
    """OpenAI's form of a schema."""

    name: str | None = None
    description: str | None = None
    schema: Schema | None = None
    strict: bool | None = None


class ResponseFormat(msgspec.Struct, kw_only=True):
    """OpenAI's field for JSON answers."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: NamedSchema | None = None
    schema: Annotated[Schema | None, Meta(description="of json_object: as llama.cpp's server takes it")] = None


class FormatFields(msgspec.Struct, kw_only=True):
    """What the answer must look like; nothing given is any text."""

    grammar: (
        Annotated[str, Meta(description="a regular expression for the whole answer, or a grammar in GBNF or Lark")]
        | None
    ) = None
    json_schema: Annotated[Schema | str, Meta(description="the answer is JSON that matches it")] | None = None
    response_format: ResponseFormat | None = None


@dataclass(frozen=True, slots=True)
class AnswerFormat:
    """What a request asks of its answers' form.

    Attributes:
        constraint: What masks the tokens; None for any text.
        check: What finished answers are checked with; None where there is no schema.
        is_checked_only: Whether the check can fail, because something else masks the tokens.
        instruction: What the model is told; None for nothing.
        schema: The schema that it is told as well, where there is room for it.
    """

    constraint: Constraint | None = None
    check: SchemaCheck | None = None
    is_checked_only: bool = False
    instruction: str | None = None
    schema: str | None = None

    def behind(self, closer: str, opener: str = "") -> AnswerFormat:
        """The same behind a model's reasoning.

        Args:
            closer: What ends the reasoning.
            opener: What answers that have reasoning begin with; empty where they are in it from their beginning on.
        """
        if self.constraint is None:
            return self
        return replace(self, constraint=replace(self.constraint, after=closer, opener=opener))

    def mismatch(self, text: str) -> str | None:
        """What is wrong with a finished answer, None where it matches or cannot be judged.

        Raises:
            BadInputError: The schema is too complex to be checked, and nothing but the check follows it.
        """
        if self.check is None:
            return None
        constraint = self.constraint
        if constraint is not None and constraint.after and text.startswith(constraint.opener):
            _, found, text = text.partition(constraint.after)
            if not found:
                return None
        try:
            return self.check.mismatch(text)
        except BadInputError:
            if self.is_checked_only:
                raise
            return None  # the mask is exact without a second opinion

    def told(self, messages: Sequence[dict[str, Any]], n_ctx: int) -> list[dict[str, Any]]:
        """The conversation with the instruction at the end of its system message.

        Args:
            messages: The request's.
            n_ctx: Tokens of the model's context: a schema with so many characters fills about a quarter of it.
        """
        if self.instruction is None:
            return list(messages)
        said = self.instruction
        if self.schema is not None and len(self.schema) <= min(MAX_TOLD_CHARS, n_ctx):
            said = f"{said} The schema:\n{self.schema}"
        return with_system(messages, said)


ANY_TEXT = AnswerFormat()


def format_of(fields: FormatFields) -> AnswerFormat:
    """Return what a request asks of its answers' form.

    Raises:
        BadInputError: A schema that is none, two of them, or one in a field where it has no place.
    """
    grammar = Constraint.of_grammar(fields.grammar) if fields.grammar else None
    json = _json_constraint(fields)
    if json is None:
        return AnswerFormat(grammar) if grammar else ANY_TEXT
    if json.kind == "json_object":
        return AnswerFormat(grammar or json, instruction="Answer with one JSON object and nothing else.")
    check = SchemaCheck(json.source, json.param)
    instruction = "Answer with JSON that matches a JSON schema, and with nothing else."
    return AnswerFormat(grammar or json, check, grammar is not None, instruction, json.source)


def _json_constraint(fields: FormatFields) -> Constraint | None:
    given = fields.response_format
    own = None if fields.json_schema is None else Constraint.of_schema(fields.json_schema)
    if given is None or given.type == "text":
        return own
    schema, param = given.schema, "response_format.schema"
    if given.type == "json_schema":
        if given.json_schema is None:
            raise BadInputError("a field is missing", param="response_format.json_schema")
        schema, param = given.json_schema.schema, "response_format.json_schema.schema"
    if own is not None:
        hint = "leave one of them out"
        raise BadInputError("json_schema and response_format are given", param="response_format", hint=hint)
    return Constraint("json_object", param="response_format") if schema is None else Constraint.of_schema(schema, param)
