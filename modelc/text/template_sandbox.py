"""The Jinja environment in which chat templates run: no way to Python, and a bound on time and memory.

A template comes from a model file, so it may be hostile. Jinja's immutable sandbox keeps it from Python's objects; what
it does not bound is paid for here, see `template_budget`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jinja2 import Template, nodes
from jinja2.exceptions import TemplateSyntaxError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context, Macro, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace, pass_context
from jinja2.visitor import NodeTransformer

from modelc.text.template_budget import BUDGET_KEY, CALL_UNITS, ITEM_UNITS, STEP_UNITS, Budget, RefusedError, budget_of
from modelc.text.template_filters import bounded_filters, concat, pay_for_format, pay_for_method

MAX_RANGE = 100_000
MAX_INT_BITS = 4096

_COUNTED, _WEIGHED, _JOINED = "counted steps", "weighed value", "joined texts"

_TEXT_METHODS = """capitalize casefold count endswith find format index isalnum isalpha isascii isdecimal isdigit
isidentifier islower isnumeric isspace istitle isupper join lower lstrip partition removeprefix removesuffix replace
rfind rindex rpartition rsplit rstrip split splitlines startswith strip swapcase title upper"""
_METHODS: dict[type, frozenset[str]] = {
    str: frozenset(_TEXT_METHODS.split()),
    dict: frozenset({"copy", "get", "items", "keys", "values"}),
    list: frozenset({"copy", "count", "index"}),
    tuple: frozenset({"count", "index"}),
}
_NO_METHODS = (int, float, complex, bytes, bytearray, type)


class TemplateSandbox(ImmutableSandboxedEnvironment):
    """Compiles and renders chat templates, with the settings that Hugging Face renders them with."""

    intercepted_binops = frozenset({"+", "*", "%", "**"})
    concat = staticmethod(concat)

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.loopcontrols", GenerationTag],
            optimized=False,  # folding constants takes quadratic time in deep expressions
        )
        self.finalize = _finalize
        self.filters = {**bounded_filters(), _COUNTED: _counted, _WEIGHED: _weighed, _JOINED: _joined}
        self.globals["range"] = _range
        del self.globals["lipsum"]

    def compile_template(self, source: str) -> Template:
        """Compile `source`, with the payments built in.

        Raises:
            jinja2.TemplateError: It is no valid template.
        """
        tree = _Payments().visit(self.parse(source))
        tree.set_environment(self)
        return self.template_class.from_code(self, self.compile(tree), self.make_globals(None))

    def render(self, template: Template, variables: Mapping[str, Any], input_chars: int) -> str:
        """The text of a compiled template; raises whatever the rendering meets, RefusedError for a hostile one."""
        context = template.new_context({**variables, BUDGET_KEY: Budget(input_chars)})
        return concat(template.root_render_func(context))

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
        """Refuse at once; Jinja would wait until the value is used."""
        raise RefusedError(f"it reaches for '{attribute}' of a {type(obj).__name__}")

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Pay for what `left operator right` builds."""
        budget = budget_of(context)
        if operator == "**" or (isinstance(left, int) and isinstance(right, int) and operator == "*"):
            _check_number(operator, left, right)
        elif operator == "*":
            sequence, times = (left, right) if isinstance(right, int) else (right, left)
            if isinstance(times, int) and isinstance(sequence, (str, list, tuple)):
                budget.spend(_room(sequence) * max(times, 0))
        elif operator == "+" and isinstance(left, (str, list, tuple)) and isinstance(right, (str, list, tuple)):
            budget.spend(_room(left) + _room(right))
        elif operator == "%" and isinstance(left, str):
            pay_for_format(budget, left, right)
        return super().call_binop(context, operator, left, right)

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Pay for a call, and refuse methods that templates have no use for."""
        budget = budget_of(context)
        budget.spend(CALL_UNITS)
        if isinstance(function, Macro) or function in (dict, Namespace):
            budget.spend_on(args, kwargs)
        method = getattr(function, "__wrapped__", function)  # Jinja wraps str.format
        owner, name = getattr(method, "__self__", None), str(getattr(method, "__name__", ""))
        if isinstance(owner, (*_METHODS, *_NO_METHODS)):
            if not any(isinstance(owner, kind) and name in names for kind, names in _METHODS.items()):
                raise RefusedError(f"it calls '{name}' of a {type(owner).__name__}")
            if isinstance(owner, str):
                if name == "join":
                    args = tuple(list(values) for values in args)
                pay_for_method(budget, owner, name, args, kwargs)
        return super().call(context, function, *args, **kwargs)


class GenerationTag(Extension):
    """`{% generation %}` marks the assistant's words for training; here its body is all that counts."""

    tags = {"generation"}  # noqa: RUF012 - the base class declares it so

    def parse(self, parser: Parser) -> nodes.Node:
        """The body, in a scope of its own."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class _Payments(NodeTransformer):
    """Lets loops, `~`, lists and comparisons pay: each value in question goes through a filter that does."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.iter = _filtered(node.iter, _COUNTED)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), _JOINED)

    def visit_List(self, node: nodes.List | nodes.Tuple) -> nodes.Node:
        self.generic_visit(node)
        is_target = isinstance(node, nodes.Tuple) and node.ctx != "load"
        is_constant = all(isinstance(item, nodes.Const) for item in node.items)
        return node if is_target or is_constant else _filtered(node, _WEIGHED)

    visit_Tuple = visit_List

    def visit_Dict(self, node: nodes.Dict) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(node, _WEIGHED)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        self.generic_visit(node)
        node.expr = _weighed_unless_constant(node.expr)
        for operand in node.ops:
            operand.expr = _weighed_unless_constant(operand.expr)
        return node

    def visit_Include(self, node: nodes.Node) -> nodes.Node:
        raise TemplateSyntaxError("a chat template cannot load another template", node.lineno)

    visit_Import = visit_FromImport = visit_Extends = visit_Include


def _weighed_unless_constant(node: nodes.Expr) -> nodes.Expr:
    return node if isinstance(node, nodes.Const) else _filtered(node, _WEIGHED)


def _filtered(node: nodes.Node, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


@pass_context
def _finalize(context: Context, value: object) -> object:
    budget_of(context).spend_on(value)
    return value


@pass_context
def _counted(context: Context, values: Iterable[Any]) -> Iterator[Any]:
    budget = budget_of(context)
    for value in values:
        budget.spend(STEP_UNITS)
        yield value


@pass_context
def _weighed(context: Context, value: object) -> object:
    if not isinstance(value, str):
        budget_of(context).spend_on(value)
    return value


@pass_context
def _joined(context: Context, values: list[object]) -> str:
    budget_of(context).spend_on(values)
    return "".join(map(str, values))


def _room(value: str | list[Any] | tuple[Any, ...]) -> int:
    return len(value) if isinstance(value, str) else ITEM_UNITS * len(value)


def _range(*bounds: int) -> range:
    numbers = range(*bounds)
    if len(numbers) > MAX_RANGE:
        raise RefusedError(f"it counts to more than {MAX_RANGE}")
    return numbers


def _check_number(operator: str, left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int):
        bits = left.bit_length() + right.bit_length() if operator == "*" else left.bit_length() * right
        if bits > MAX_INT_BITS:
            raise RefusedError("it computes an unreasonable number")
