"""From constraints to automata: compiled once, kept for the next request with the same one."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from modelc.constraints.automaton import Automaton
from modelc.constraints.constraint import Constraint
from modelc.constraints.grammars import complaint, library_grammar
from modelc.constraints.reasoning import Mark, Reasoning
from modelc.constraints.vocabulary import TokenTable
from modelc.errors import BadInputError
from modelc.text import Tokenizer

if TYPE_CHECKING:
    from llguidance import LLMatcher

MAX_KEPT = 32
# What the first step and each further one may cost, in the library's units: at the worst half a second, and tens of
# milliseconds. Its states take 1 to 2 KB each.
_LIMITS: dict[str, Any] = {
    "initial_lexer_fuel": 400_000,
    "step_lexer_fuel": 100_000,
    "step_max_items": 20_000,
    "max_lexer_states": 50_000,
    "verbose_errors": False,
}


class ConstraintCompiler:
    """The constraints of one model. Thread-safe; compiling holds neither the lock nor Python's.

    Args:
        tokenizer: the model's.
        vocab_size: logits of the model.
    """

    def __init__(self, tokenizer: Tokenizer, vocab_size: int) -> None:
        self._tokenizer = tokenizer
        self._vocab_size = vocab_size
        self._table: TokenTable | None = None
        self._table_lock = threading.Lock()
        self._kept: OrderedDict[Constraint, LLMatcher] = OrderedDict()  # the newest last
        self._marks: dict[str, Mark] = {}
        self._lock = threading.Lock()
        self._later = ThreadPoolExecutor(1, thread_name_prefix="modelc-masks")  # its thread starts when it is needed

    def close(self) -> None:
        """End the thread that makes masks, once the automata are no longer used."""
        self._later.shutdown()

    def automaton(self, constraint: Constraint) -> Automaton:
        """An automaton at the beginning of the constraint's language.

        Raises:
            BadInputError: the constraint is malformed, unsupported, too complex, or nothing matches it (`param` names
                its field).
        """
        reasoning = self._reasoning(constraint)
        constraint = replace(constraint, after="", opener="")
        with self._lock:
            kept = self._kept.get(constraint)
            if kept is not None:
                self._kept.move_to_end(constraint)
        matcher = self._compile(constraint) if kept is None else kept

        def failure(message: str) -> BadInputError:
            with self._lock:
                self._kept.pop(constraint, None)  # what the library computed for it so far counts against its limits
            return complaint(constraint, message)

        automaton = Automaton(matcher.deep_copy(), self._tokens(), failure, self._later, reasoning)
        with self._lock:
            self._kept[constraint] = matcher
            if len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
        return automaton

    def _reasoning(self, constraint: Constraint) -> Reasoning | None:
        if not constraint.after:
            return None
        opener = self._mark(constraint.opener) if constraint.opener else None
        return Reasoning(self._tokens(), opener, self._mark(constraint.after))

    def _mark(self, text: str) -> Mark:
        if text not in self._marks:
            self._marks[text] = Mark(self._tokens(), text)
        return self._marks[text]

    def _tokens(self) -> TokenTable:
        with self._table_lock:
            if self._table is None:
                self._table = TokenTable(self._tokenizer, self._vocab_size)
            return self._table

    def _compile(self, constraint: Constraint) -> LLMatcher:
        from llguidance import LLMatcher, LLParserLimits

        limits = LLParserLimits(**_LIMITS)
        spells = self._tokens().spells
        matcher = LLMatcher(spells, library_grammar(constraint), log_level=0, limits=limits)
        message = matcher.get_error()
        if message and constraint.kind == "regex":  # once more as the user wrote it, for the right place in it
            written = LLMatcher(spells, LLMatcher.grammar_from_regex(constraint.source), log_level=0, limits=limits)
            message = written.get_error() or message
        if message:
            raise complaint(constraint, message)
        return matcher
