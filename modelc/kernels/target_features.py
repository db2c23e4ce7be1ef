"""Code that depends on the processor, decided when machine code is made and not while a kernel is lowered.

A kernel is lowered to LLVM IR once. Where an instruction set offers a better way, the IR has both, behind a call of
`modelc.has.FEATURE()`. `with_features` sets what those functions return; the optimiser then leaves one way only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from llvmlite import ir

PREFIX = "modelc.has."
I1 = ir.IntType(1)

_DEFINITION = re.compile(  # as LLVM prints it: name, attributes, a label, and the value
    rf'(@"?{re.escape(PREFIX)}([\w.]+)"?\(\)[^{{\n]*\{{\n[^\n]*:[^\n]*\n *ret i1 )(?:true|false)'
)
_ANY_DEFINITION = re.compile(rf'^define .*@"?{re.escape(PREFIX)}', re.MULTILINE)


def choose(
    context: Any,
    builder: ir.IRBuilder,
    feature: str,
    with_it: Callable[[], ir.Value | None],
    without: Callable[[], ir.Value | None],
) -> Any:
    """What `with_it()` gives where the processor has `feature` (LLVM's name), else what `without()` gives.

    Both write code; they give values of one type, or None.
    """
    with builder.if_else(builder.call(_has(context, builder.module, feature), [])) as (then, otherwise):
        with then:
            values = [(with_it(), builder.block)]
        with otherwise:
            values.append((without(), builder.block))
    if values[0][0] is None:
        return None
    result = builder.phi(values[0][0].type)
    for value, block in values:
        result.add_incoming(value, block)
    return result


def choose_first(
    context: Any,
    builder: ir.IRBuilder,
    ways: Sequence[tuple[str, Callable[[], ir.Value]]],
    otherwise: Callable[[], ir.Value],
) -> ir.Value:
    """As `choose`, of several ways: the first whose feature the processor has."""
    if not ways:
        return otherwise()
    (feature, way), *others = ways
    value: ir.Value = choose(context, builder, feature, way, lambda: choose_first(context, builder, others, otherwise))
    return value


def once(
    builder: ir.IRBuilder,
    name: str,
    result: ir.Type,
    args: list[ir.Value],
    define: Callable[..., ir.Value],
    inline: bool = True,
) -> ir.Value:
    """A call of the function `name`, which the module gets once: `define(builder, *arguments)` writes its body."""
    function = builder.module.globals.get(name)
    if function is None:
        function = _function(builder.module, name, result, [value.type for value in args], inline)
        body = ir.IRBuilder(function.append_basic_block())
        body.ret(define(body, *function.args))
    return builder.call(function, args)


def with_features(text: str, features: Collection[str]) -> str:
    """The LLVM IR `text` for a processor that has `features` and no others."""
    chosen, count = _DEFINITION.subn(lambda found: found[1] + ("true" if found[2] in features else "false"), text)
    assert count == len(_ANY_DEFINITION.findall(text)), "LLVM prints a function in another way"
    return chosen


def _has(context: Any, module: ir.Module, feature: str) -> ir.Function:
    """Says whether the processor that Numba compiles for has `feature`, until `with_features` says otherwise."""
    name = PREFIX + feature
    function = module.globals.get(name)
    if function is None:
        function = _function(module, name, I1, [], inline=True)
        is_there = f"+{feature}" in context.codegen()._tm_features.split(",")
        ir.IRBuilder(function.append_basic_block()).ret(ir.Constant(I1, is_there))
    return function


def _function(module: ir.Module, name: str, result: ir.Type, arguments: list[ir.Type], inline: bool) -> ir.Function:
    function = ir.Function(module, ir.FunctionType(result, arguments), name)
    function.linkage = "linkonce_odr"
    function.attributes.add("alwaysinline" if inline else "noinline")
    return function
