"""Exact constraints: regular expressions, grammars and JSON schemas as masks over a model's vocabulary."""

from modelc.constraints.automaton import Automaton
from modelc.constraints.compiler import ConstraintCompiler
from modelc.constraints.constraint import Constraint
from modelc.constraints.schema_check import SchemaCheck

__all__ = ["Automaton", "Constraint", "ConstraintCompiler", "SchemaCheck"]
