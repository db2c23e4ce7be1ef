"""Makes a small draft model for speculative decoding, and shows what it is worth.

The model itself writes answers to many questions; an MLP learns which token follows which; both go into one `.modelc`
file. Then held-out questions are answered without speculation, with prompt lookup, and with the draft.
Usage: `python -m tools.make_draft SOURCE OUTPUT [--hidden 64] [--conversations 160] [--gamma 4] [--seed 1]`.
"""

import argparse
import itertools
import queue
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt

from modelc import formats, layout, runtime
from modelc.dtypes import DTYPES
from modelc.errors import ModelcError
from modelc.ir import Model, Tensor
from modelc.kernels.objects import ObjectCache
from modelc.models import lower
from modelc.runtime import Chunk, Sampling, TextModel
from modelc.runtime.draft import DraftProposer
from tools.draft_mlp import Mlp, fit

TEMPERATURE = 0.8
ANSWER_TOKENS = 300
EPOCHS = 4
HELD_OUT = 6  # conversations that are not learned from, and are used to measure
MEASURED_TOKENS = 128
ROUNDS = 2

TOPICS = """the sea, a small village, how bread is made, the moon, a lost dog, electricity, chess, the Roman Empire,
gardening, a train journey, music, money, friendship, the human heart, volcanoes, cooking rice, a robot, winter,
learning a language, bees, a bicycle, mathematics, sleep, the city of Paris, dinosaurs, a broken clock, software,
health, rivers, painting""".replace("\n", " ").split(", ")
FORMS = (
    "Explain {} to a child.",
    "Write a short story about {}.",
    "List ten facts about {}.",
    "What should I know about {}?",
    "Write a letter to a friend about {}.",
    "Give me advice about {}.",
    "Write a poem about {}.",
)


def questions(n: int, seed: int) -> tuple[list[str], list[str]]:
    """Return HELD_OUT questions, and n others, which come again when there are not enough."""
    every = [form.format(topic) for topic, form in itertools.product(TOPICS, FORMS)]
    order = [every[i] for i in np.random.default_rng(seed).permutation(len(every))]
    return order[:HELD_OUT], list(itertools.islice(itertools.cycle(order[HELD_OUT:]), n))


def answers(model: TextModel, prompts: Sequence[Sequence[int]], max_tokens: int, seed: int) -> list[list[int]]:
    """Return the tokens of sampled answers, each with the prompt's last token in front; all at the same time."""
    sinks: list[queue.SimpleQueue[Chunk]] = [queue.SimpleQueue() for _ in prompts]
    for i, (prompt, sink) in enumerate(zip(prompts, sinks, strict=True)):
        sampling = Sampling(max_tokens=max_tokens, temperature=TEMPERATURE, seed=seed + i)
        model.submit(prompt, sampling, sink.put)
    return [[prompt[-1], *_tokens(sink)] for prompt, sink in zip(prompts, sinks, strict=True)]


def _tokens(sink: "queue.SimpleQueue[Chunk]") -> list[int]:
    tokens: list[int] = []
    while True:
        chunk = sink.get()
        tokens += chunk.token_ids
        if chunk.finish_reason is not None:
            return tokens


def pairs_of(sequences: Sequence[Sequence[int]]) -> npt.NDArray[np.int64]:
    """Return int64 (n, 2): each token of the sequences with the one that follows."""
    return np.array([pair for tokens in sequences for pair in itertools.pairwise(tokens)], np.int64).reshape(-1, 2)


def with_draft(model: Model, mlp: Mlp) -> Model:
    """Return the model with the draft's tensors; its embedding is the model's own."""
    added = [
        _tensor("draft.fc1.weight", mlp.fc1, "f16"),
        _tensor("draft.fc1.bias", mlp.bias1, "f32"),
        _tensor("draft.fc2.weight", mlp.fc2, "q8_0"),  # the largest: a quarter of its bytes to read for each token
        _tensor("draft.fc2.bias", mlp.bias2, "f32"),
    ]
    tensors = model.tensors | {tensor.name: tensor for tensor in added}
    return replace(model, tensors={name: tensors[name] for name in sorted(tensors)})


def _tensor(name: str, values: npt.NDArray[np.float32], dtype: str) -> Tensor:
    return Tensor(name, DTYPES[dtype], values.shape, layout.quantize(DTYPES[dtype], values, values.shape))


def acceptance(model: Model, sequences: Sequence[Sequence[int]]) -> float:
    """Return the share of the sequences' tokens that the draft in `model` guesses from the one before."""
    proposer = DraftProposer(model, lower(model).weights, "a8", ObjectCache())
    right = [proposer.propose([token], 1) == [following] for token, following in pairs_of(sequences).tolist()]
    proposer.close()
    return sum(right) / max(len(right), 1)


@dataclass
class Way:
    """A way to decode, and the tokens per second behind the first token of each of its answers."""

    title: str
    model: TextModel
    speeds: list[float] = field(default_factory=list)

    def answer(self, prompt: Sequence[int], sampling: Sampling) -> list[int]:
        """Answer alone, on the clock."""
        sink: queue.SimpleQueue[Chunk] = queue.SimpleQueue()
        self.model.submit(prompt, sampling, sink.put)
        chunk = sink.get()
        start, tokens = time.perf_counter(), list(chunk.token_ids)
        if chunk.finish_reason is None:
            tokens += _tokens(sink)
            self.speeds.append((len(tokens) - 1) / (time.perf_counter() - start))
        return tokens

    def __str__(self) -> str:
        counters = self.model.counters
        share = f", accepted {counters.accepted / counters.proposed:.0%}" if counters.proposed else ""
        speed = median(self.speeds or [0.0])
        return f"  {self.title:<15} {speed:7.1f} tokens/s, proposed {counters.proposed}{share}"


def compare(source: Path, output: Path, prompts: Sequence[Sequence[int]], gamma: int, temperature: float) -> None:
    """Answer the prompts in each way, in turns, so that a slow moment of the machine meets all; print what came.

    Raises:
        ModelcError: the answers differ, which they must not.
    """
    ways = [
        Way("no speculation", runtime.load(source).as_text_model()),
        Way("prompt lookup", runtime.load(source, gamma=gamma).as_text_model()),
        Way("draft", runtime.load(output, gamma=gamma).as_text_model()),
    ]
    sequences = []
    for i, prompt in enumerate(list(prompts) * ROUNDS):
        sampling = Sampling(max_tokens=MEASURED_TOKENS, temperature=temperature, seed=i)
        first, *others = [way.answer(prompt, sampling) for way in ways]
        if any(tokens != first for tokens in others):
            raise ModelcError("answers differ with and without speculation", hint="please report it")
        sequences.append([prompt[-1], *first])
    right = acceptance(formats.open_model(output), sequences)
    print(f"{len(prompts)} other questions, temperature {temperature:g}: the draft guesses {right:.0%} of the tokens")
    for way in ways:
        way.model.close()
        print(way, flush=True)


def make(source: Path, output: Path, hidden_dim: int, conversations: int, gamma: int, seed: int) -> None:
    """Make the draft, write the file, print what it does."""
    model = formats.open_model(source)
    with runtime.load(source).as_text_model() as writer:
        held_out, prompts = (
            [writer.chat_prompt_ids([{"role": "user", "content": question}]) for question in some]
            for some in questions(conversations, seed)
        )
        print(f"the model answers {len(prompts)} questions", flush=True)
        start = time.monotonic()
        pairs = pairs_of(answers(writer, prompts, ANSWER_TOKENS, seed))
    print(f"  {len(pairs)} tokens in {time.monotonic() - start:.0f} s", flush=True)
    table = model.tensors["token_embd.weight"]
    embedding = layout.dequantize_rows(table, 0, table.shape[0])
    start = time.monotonic()
    for loss, mlp in fit(pairs, embedding, hidden_dim, EPOCHS, seed):
        fitted = mlp
        print(f"  loss {loss:.3f} after {time.monotonic() - start:.0f} s", flush=True)
    formats.modelc.write(with_draft(model, fitted), output)
    print(f"wrote {output}", flush=True)
    for temperature in (0.0, TEMPERATURE):
        compare(source, output, held_out, gamma, temperature)


def main(argv: Sequence[str] | None = None) -> int:
    """Read the arguments, make the draft, and return the exit code."""
    parser = argparse.ArgumentParser(prog="make_draft", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("source", type=Path, help="a model's .gguf or .modelc file")
    parser.add_argument("output", type=Path, help="the .modelc file to write")
    parser.add_argument("--hidden", type=int, default=64, help="columns of the hidden layer, a multiple of 32 (64)")
    parser.add_argument("--conversations", type=int, default=160, help="answers to learn from (160)")
    parser.add_argument("--gamma", type=int, default=4, help="most tokens proposed for one pass (4)")
    parser.add_argument("--seed", type=int, default=1, help="of answers and weights (1)")
    options = parser.parse_args(argv)
    if options.hidden < 1 or options.hidden % 32 or options.conversations < 1:
        parser.error("--hidden must be a multiple of 32, --conversations at least 1")
    try:
        make(options.source, options.output, options.hidden, options.conversations, options.gamma, options.seed)
    except ModelcError as error:
        print(f"make_draft: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
