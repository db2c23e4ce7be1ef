"""Answers of a real model under many constraints, at a temperature at which it says anything.

    python -m conformance.constraints.answers MODEL [--temperature 1.5] [--max-tokens 150]

Each answer that ended by itself must match, by another library's word; each that was cut must begin a match, which is
shown by going on to one; what cannot be followed must have been refused with its reason.
"""

from __future__ import annotations

import argparse
import json
import queue
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.validators import validator_for

from conformance.constraints.patterns import HOSTILE, PATTERNS
from conformance.constraints.schemas import SCHEMAS
from modelc.constraints import Constraint, ConstraintCompiler
from modelc.constraints.grammars import with_ascii_classes
from modelc.errors import BadInputError
from modelc.runtime import Chunk, Generation, LanguageModel, Sampling
from modelc.runtime.loading import load

TIME_LIMIT_S = 120.0  # without a chunk
CLOSERS = '"}]0'
MAX_CLOSING = 400
REFERENCE_S = 10.0


@dataclass
class Outcome:
    """What came of one constraint.

    Attributes:
        constraint: what was asked.
        text: the answer.
        reason: why it ended; `refused` where it never began, or turned out to be too complex.
        fault: what is wrong with it, or why it was refused.
        compile_s: processor seconds until the constraint was refused or at work.
        tokens: of the answer.
        generation: the answer as the engine sees it.
    """

    constraint: Constraint
    text: str = ""
    reason: str = ""
    fault: str | None = None
    compile_s: float = 0.0
    tokens: list[int] = field(default_factory=list)
    generation: Generation | None = None


def constraints() -> list[Constraint]:
    """All of them."""
    return [*(Constraint("regex", pattern) for pattern in PATTERNS), *map(Constraint.of_schema, SCHEMAS)]


def answer_all(model: LanguageModel, temperature: float, max_tokens: int) -> list[Outcome]:
    """Ask for everything at once; the engine puts the answers into common steps.

    Raises:
        queue.Empty: nothing came any more: something hangs.
    """
    prompt = model.chat_prompt_ids([{"role": "user", "content": "Write an example of what is wanted."}])
    outcomes = [Outcome(constraint) for constraint in constraints()]
    chunks: queue.SimpleQueue[tuple[Outcome, Chunk]] = queue.SimpleQueue()
    running = 0
    for seed, outcome in enumerate(outcomes):
        sampling = Sampling(max_tokens=max_tokens, temperature=temperature, seed=seed, constraint=outcome.constraint)
        start = time.thread_time()
        try:
            outcome.generation = model.submit(
                prompt, sampling, lambda chunk, outcome=outcome: chunks.put((outcome, chunk))
            )
            running += 1
        except BadInputError as error:
            outcome.reason, outcome.fault = "refused", str(error)
        outcome.compile_s = time.thread_time() - start
    while running:
        outcome, chunk = chunks.get(timeout=TIME_LIMIT_S)
        outcome.text += chunk.text
        outcome.tokens += chunk.token_ids
        if chunk.finish_reason is not None:
            outcome.reason = chunk.finish_reason
            running -= 1
            error = outcome.generation.error if outcome.generation is not None else None
            if isinstance(error, BadInputError):
                outcome.reason, outcome.fault = "refused, late", str(error)
    return outcomes


def check(outcome: Outcome, model: LanguageModel, compiler: ConstraintCompiler) -> None:
    """Write down what is wrong with an answer."""
    if outcome.reason == "stop":
        outcome.fault = mismatch(outcome.constraint, outcome.text)
    elif outcome.reason == "length":
        whole = go_on(outcome, model, compiler)
        if whole is None:
            outcome.reason = "length, and long to go"
        elif not whole.startswith(outcome.text):
            outcome.fault = f"what was sent does not begin {whole!r}"
        else:
            outcome.fault = mismatch(outcome.constraint, whole)


def go_on(outcome: Outcome, model: LanguageModel, compiler: ConstraintCompiler) -> str | None:
    """The text of an answer that was cut, brought to an end by tokens that may come; None where that takes too many."""
    tokenizer = model.tokenizer
    automaton = compiler.automaton(outcome.constraint)
    tokens = list(outcome.tokens)
    for token in tokens:
        automaton.advance(token)
    ends = sorted(tokenizer.eog_ids)
    closers = [tokenizer.encode(char, add_special=False)[-1] for char in CLOSERS + outcome.constraint.source[:100]]
    for step in range(MAX_CLOSING):
        if automaton.finished:
            return b"".join(map(tokenizer.token_bytes, tokens)).decode("utf-8", "replace")
        if automaton.forced:
            token = automaton.forced[0]
        else:
            at = len(CLOSERS) + step % max(len(closers) - len(CLOSERS), 1)
            allowed = np.flatnonzero(np.unpackbits(automaton.mask.view(np.uint8), bitorder="little"))
            wanted = [*ends, *closers[: len(CLOSERS)], *closers[at:], *closers[len(CLOSERS) : at], int(allowed[0])]
            token = next(t for t in wanted if automaton.mask[t >> 5] >> (t & 31) & 1)
        automaton.advance(token)
        if token not in tokenizer.eog_ids:
            tokens.append(token)
    return None


def mismatch(constraint: Constraint, text: str) -> str | None:
    """What is wrong with a whole answer, by other libraries."""
    if constraint.kind == "regex":
        return _regex_mismatch(with_ascii_classes(constraint.source), text)
    schema = json.loads(constraint.source)
    validator = validator_for(schema, default=Draft202012Validator)(schema, format_checker=FormatChecker())
    try:
        errors = list(validator.iter_errors(json.loads(text)))
    except ValueError as error:
        return f"{text!r} is no JSON: {error}"
    return f"{text!r}: {errors[0].message}" if errors else None


def _regex_mismatch(pattern: str, text: str) -> str | None:
    """In a process of its own: an engine that backtracks takes for ever with patterns that are made for that."""
    program = "import regex, sys; sys.exit(regex.fullmatch(sys.argv[1], sys.argv[2], regex.V1) is None)"
    try:
        done = subprocess.run([sys.executable, "-c", program, pattern, text], timeout=REFERENCE_S, check=False)
    except subprocess.TimeoutExpired:
        return None if _is_hostile(pattern) else "the reference took too long"
    return f"{text!r} does not match" if done.returncode else None


def _is_hostile(pattern: str) -> bool:
    """Whether a pattern is one of those that no backtracking engine can check."""
    return pattern in map(with_ascii_classes, HOSTILE)


def summary(outcomes: list[Outcome]) -> str:
    """Numbers of each kind of outcome, the slowest compilation, and every fault."""
    counts: dict[str, int] = {}
    for outcome in outcomes:
        counts[outcome.reason] = counts.get(outcome.reason, 0) + 1
    slowest = max(outcomes, key=lambda outcome: outcome.compile_s)
    lines = [
        f"{len(outcomes)} constraints: {counts}",
        f"slowest to compile: {slowest.compile_s:.2f} s, {slowest.constraint.source[:60]}",
    ]
    for outcome in outcomes:
        if outcome.fault is not None:
            lines.append(f"{outcome.reason:8} {outcome.constraint.source[:70]!r}: {outcome.fault[:200]}")
    return "\n".join(lines)


def run(path: Path, temperature: float = 1.5, max_tokens: int = 150) -> list[Outcome]:
    """All answers of the model in `path`, checked."""
    model = load(path)
    assert isinstance(model, LanguageModel)
    with model:
        outcomes = answer_all(model, temperature, max_tokens)
        compiler = ConstraintCompiler(model.tokenizer, model.vocab_size)
        for outcome in outcomes:
            check(outcome, model, compiler)
    return outcomes


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--temperature", type=float, default=1.5)
    parser.add_argument("--max-tokens", type=int, default=150)
    given = parser.parse_args()
    print(summary(run(given.model, given.temperature, given.max_tokens)))
