"""What a constraint costs for each token, in processor time: `python -m conformance.constraints.cost MODEL`.

Processor time, because other programs do not change it much; a mask that takes long is made in another thread while the
model computes, so that less of it is seen on a clock.
"""

from __future__ import annotations

import queue
import statistics
import sys
import time
from pathlib import Path

from modelc.constraints import Constraint, ConstraintCompiler
from modelc.runtime import Chunk, LanguageModel, Sampling
from modelc.runtime.loading import load

CASES = {
    "a string": Constraint.of_schema({"type": "string"}),
    "a list of numbers": Constraint.of_schema({"type": "array", "items": {"type": "integer"}, "minItems": 500}),
    "an object": Constraint.of_schema({"type": "object", "additionalProperties": {"type": "string"}}),
    "short strings": Constraint.of_schema({"type": "array", "items": {"type": "string", "maxLength": 30}}),
    "words": Constraint.of_grammar(r"([a-z]{2,6} ){300}"),
    "counted text": Constraint.of_grammar(r"[^x]{1,4000}"),
}
N_TOKENS = 96
REPEATS = 5


def answer(model: LanguageModel, constraint: Constraint | None, seed: int) -> tuple[list[int], float]:
    """Tokens of an answer, and processor seconds of each."""
    chunks: queue.SimpleQueue[Chunk] = queue.SimpleQueue()
    prompt = model.chat_prompt_ids([{"role": "user", "content": "Write a long story."}])
    never_end = dict.fromkeys(model.tokenizer.eog_ids, -1e6)
    sampling = Sampling(max_tokens=N_TOKENS, temperature=1.0, seed=seed, constraint=constraint, logit_bias=never_end)
    start = time.process_time()
    model.submit(prompt, sampling, chunks.put)
    tokens: list[int] = []
    while True:
        chunk = chunks.get()
        tokens += chunk.token_ids
        if chunk.finish_reason is not None:
            return tokens, (time.process_time() - start) / len(tokens)


def followed_s(compiler: ConstraintCompiler, constraint: Constraint, tokens: list[int]) -> float:
    """Mean processor seconds of following an answer, a token: automaton and mask."""
    automaton = compiler.automaton(constraint)
    start = time.process_time()
    for token in tokens:
        automaton.advance(token)
        automaton.wait()
    return (time.process_time() - start) / len(tokens)


def main(path: Path) -> None:
    """Print a line for each constraint."""
    model = load(path, threads=1)
    assert isinstance(model, LanguageModel)
    with model:
        compiler = ConstraintCompiler(model.tokenizer, model.vocab_size)
        decode_s = statistics.median(answer(model, None, seed)[1] for seed in range(REPEATS))
        print(f"decode without a constraint: {decode_s * 1e3:.2f} ms a token, vocabulary {model.vocab_size}")
        for name, constraint in CASES.items():
            tokens = [answer(model, constraint, seed)[0] for seed in range(REPEATS)]
            cost_s = statistics.median(followed_s(compiler, constraint, each) for each in tokens)
            print(f"{name}: {cost_s * 1e6:.0f} µs a token, {cost_s / decode_s:.2%}")
        compiler.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
