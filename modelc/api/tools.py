"""Tools that a model may call: how requests name them, how the model is told, and what it must write."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from modelc.errors import BadInputError
from modelc.text import ChatTemplate, with_system

if TYPE_CHECKING:
    from modelc.constraints import Constraint

MAX_TOOLS = 128
COMBINING = frozenset(
    {"$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties"}
)  # may bring properties of their own
INSTRUCTIONS = """You may call functions. Each line describes one:
{tools}

To call one, write nothing but this, once for each call:
<tool_call>
{{"name": "<name of the function>", "arguments": <its arguments as a JSON object>}}
</tool_call>
You will be given what it returns."""


class Function(msgspec.Struct):
    """A function; `parameters` is the JSON schema of its arguments, an object."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
    description: str | None = None
    parameters: dict[str, Any] | None = None


class Tool(msgspec.Struct, kw_only=True):
    """Something the model may use."""

    type: Literal["function"] = "function"
    function: Function


class FunctionName(msgspec.Struct):
    """One of the functions."""

    name: str


class NamedTool(msgspec.Struct, kw_only=True):
    """The tool that must be called."""

    type: Literal["function"] = "function"
    function: FunctionName


Tools = Annotated[list[Tool], Meta(max_length=MAX_TOOLS, description="functions the model may call")]
ToolChoice = Literal["none", "auto", "required"] | NamedTool


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """What a request offers to the model.

    Attributes:
        tools: As chat templates take them.
        names: Of the functions.
        is_parallel: Whether more than one call may be answered.
        constraint: The answer's language, where a call is demanded.
    """

    tools: Sequence[Mapping[str, Any]] = ()
    names: frozenset[str] = frozenset()
    is_parallel: bool = True
    constraint: Constraint | None = None


NO_TOOLS = ToolOffer()


def offer_of(tools: Sequence[Tool] | None, choice: ToolChoice | None, parallel: bool | None) -> ToolOffer:
    """Return what is offered, nothing where the choice is `none`.

    Raises:
        BadInputError: Two tools with one name, arguments that are no object, or a choice that is not among them.
    """
    names = [tool.function.name for tool in tools or ()]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadInputError("two tools have the same name", param="tools", got=twice)
    for i, tool in enumerate(tools or ()):
        if (kind := (tool.function.parameters or {}).get("type", "object")) != "object":
            where = f"tools[{i}].function.parameters.type"
            raise BadInputError("arguments must be an object", param=where, got=repr(kind), expected="'object'")
    demanded = list(tools or ()) if choice == "required" else []
    if isinstance(choice, NamedTool):
        demanded = [tool for tool in tools or () if tool.function.name == choice.function.name]
    if choice not in (None, "none", "auto") and not demanded:
        got = choice.function.name if isinstance(choice, NamedTool) else choice
        expected = f"one of {', '.join(names)}" if names else "tools to choose from"
        raise BadInputError("no such tool", param="tool_choice", got=got, expected=expected)
    if choice == "none" or not names:
        return NO_TOOLS
    offer = ToolOffer([_described(tool) for tool in tools or ()], frozenset(names), parallel is not False)
    if not demanded:
        return offer
    from modelc.constraints import Constraint  # late: it imports much, and few requests need it

    has_many = offer.is_parallel if choice == "required" else parallel is True
    try:
        schema = calls_schema(demanded) if has_many else call_schema(demanded)
        return replace(offer, constraint=Constraint.of_schema(schema, "tools"))
    except RecursionError:
        raise BadInputError("the parameters are nested too deeply", param="tools") from None


def call_schema(tools: Sequence[Tool]) -> dict[str, Any]:
    """Return the JSON schema of a call of any of these tools."""
    calls, definitions = [], {}
    for i, tool in enumerate(tools):
        place = f"tool_{i}"
        definitions[place] = _moved(_arguments(tool.function.parameters or {}), f"#/$defs/{place}")
        properties = {"name": {"const": tool.function.name}, "arguments": {"$ref": f"#/$defs/{place}"}}
        calls.append(
            {
                "type": "object",
                "properties": properties,
                "required": list(properties),
                "additionalProperties": False,
            }
        )
    return {**(calls[0] if len(calls) == 1 else {"anyOf": calls}), "$defs": definitions}


def calls_schema(tools: Sequence[Tool]) -> dict[str, Any]:
    """Return the JSON schema of a list of one or more calls of these tools."""
    call = call_schema(tools)
    return {"type": "array", "minItems": 1, "$defs": call.pop("$defs"), "items": call}


@lru_cache(maxsize=8)
def takes_tools(template: str | None) -> bool:
    """Whether a chat template tells the model of tools."""
    return ChatTemplate(template).takes_tools


def told_in_words(messages: Sequence[dict[str, Any]], tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a conversation for a template that knows no tools: offered by the system, calls and results as text."""
    told = [_in_words(message) for message in messages]
    if not tools:
        return told
    instructions = INSTRUCTIONS.format(tools="\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools))
    return with_system(told, instructions)


def _in_words(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"] or ""
    if message["role"] == "tool":
        return {"role": "user", "content": f"<tool_response>\n{content}\n</tool_response>"}
    calls = message.get("tool_calls") or []
    written = [f"<tool_call>\n{json.dumps(call['function'], ensure_ascii=False)}\n</tool_call>" for call in calls]
    others = {key: value for key, value in message.items() if key not in ("tool_calls", "tool_call_id")}
    return {**others, "content": "\n".join(filter(None, [content, *written]))}


def _described(tool: Tool) -> dict[str, Any]:
    function = tool.function
    parameters = function.parameters or {"type": "object", "properties": {}}
    described = {"name": function.name, "description": function.description or "", "parameters": parameters}
    return {"type": "function", "function": described}


def _arguments(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object, without properties that it does not list: small models would go on for ever."""
    is_closed = "properties" in parameters and not parameters.keys() & COMBINING
    return {"type": "object", **({"additionalProperties": False} if is_closed else {}), **parameters}


def _moved(schema: Any, place: str) -> Any:
    """Return a schema whose references to itself hold where it is a part of another one."""
    if isinstance(schema, list):
        return [_moved(item, place) for item in schema]
    if not isinstance(schema, dict):
        return schema
    moved = {key: _moved(value, place) for key, value in schema.items()}
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        moved["$ref"] = place + reference[1:]
    return moved
