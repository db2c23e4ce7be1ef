"""Many requests at a time: `python -m bench.serving`, after `make peers` beside OpenVINO GenAI.

Decoding speed is taken from the difference of two runs, with many tokens and with one, so that prompts do not count.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt

from bench.engines import PEERS, BenchError, Engine, EngineKind, running
from bench.goals import Goal
from bench.machine import describe_machine
from bench.models import PUBLISHED, prepare
from bench.report import Table
from modelc.kernels.kv_pages import head_bytes

MODELC = EngineKind("modelc", "bench.workers.modelc_serving", Path(sys.executable))
OPENVINO = EngineKind("OpenVINO GenAI", "bench.workers.openvino_serving", PEERS)
PAGE = Path(__file__).parent / "SERVING.md"
DOCUMENTS = Path(__file__).parent.parent
CONTEXT = 60
TOKENS = 64
GAMMA = 8
HEAD_DIM = 64
QUOTED = """The lighthouse stands at the end of a narrow road. Every evening the keeper climbs one hundred and twelve
steps, trims the wick, cleans the lens and writes the weather into a thick grey book. In winter the wind
shakes the windows, and in summer swallows build their nests under the gallery. Ships pass far out at
sea, and their crews count the flashes: three short, one long, then darkness. On Sundays his sister
brings bread, apples and the newspaper of the week before."""


def main() -> int:
    """Measure, show, return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.serving", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--f32", type=Path, help="the same model with f32 weights (GGUF), to measure too")
    parser.add_argument("--record", action="store_true", help="write the table to bench/SERVING.md")
    options = parser.parse_args()
    try:
        table = _measure(options)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    print(table.as_text())
    if options.record:
        machine = ", ".join(f"{name} {value}" for name, value in describe_machine().items())
        day = datetime.date.today().isoformat()
        head = f"# Many requests at a time\n\n{day}; {machine}; {options.threads} threads.\n\n"
        PAGE.write_text(head + table.as_markdown() + "\n", "utf-8")
    return 0


def _measure(options: argparse.Namespace) -> Table:
    files = prepare(PUBLISHED, None)
    rows = []
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(running(MODELC))
        ours.ask("load", model=str(files.packed), threads=options.threads)
        engines = [ours]
        if PEERS.exists():
            peer = stack.enter_context(running(OPENVINO))
            peer.ask("load", model=str(files.gguf), threads=options.threads)
            engines.append(peer)
        rows += _batching(engines, "Q4_1", options.rounds, 3.0)
        rows += _latency(ours, options.rounds)
        rows += _repeated_prompts(ours, options.rounds)
        rows += _lookup(ours, files.packed, options.threads, options.rounds)
        rows += _kv_precision(ours, files.packed, options.threads)
        if options.f32 is not None:
            ours.ask("load", model=str(options.f32), threads=options.threads)
            rows += _batching([ours], "F32", options.rounds, 6.0)
    return Table("Serving", ("what", "value", "goal"), rows)


def _batching(engines: list[Engine], model: str, rounds: int, goal: float) -> list[tuple[str, ...]]:
    speeds: dict[tuple[str, int], list[float]] = {}
    for number in range(-1, rounds):  # the first one warms up
        for engine in engines:
            for requests in (1, 16):
                speed = _decode_speed(engine, requests, number + 2)
                if number >= 0:
                    speeds.setdefault((engine.name, requests), []).append(speed)
    rows = []
    for engine in engines:
        one, many = (speeds[engine.name, requests] for requests in (1, 16))
        ratio = median(m / o for m, o in zip(many, one, strict=True))
        what = f"{model}, {engine.name}: 16 requests, tokens/s in all (1 request: {median(one):.0f})"
        verdict = Goal(goal).verdict(ratio) if engine is engines[0] else ""
        rows.append((what, f"{median(many):.0f}, {ratio:.2f} times", verdict))
    if len(engines) > 1:
        ours, peer = (speeds[engine.name, 16] for engine in engines[:2])
        ratio = median(a / b for a, b in zip(ours, peer, strict=True))
        rows.append((f"{model}: 16 requests, modelc over {engines[1].name}", f"{ratio:.2f}", Goal(2.0).verdict(ratio)))
    return rows


def _decode_speed(engine: Engine, requests: int, seed: int) -> float:
    arguments = {"requests": requests, "context": CONTEXT}
    first = engine.ask("concurrent", **arguments, n=1, seed=seed)["seconds"]
    whole = engine.ask("concurrent", **arguments, n=TOKENS + 1, seed=seed + 500)["seconds"]
    return requests * TOKENS / (float(whole) - float(first))


def _latency(engine: Engine, rounds: int) -> list[tuple[str, ...]]:
    alone, behind, quiet, busy = [], [], [], []
    for number in range(rounds):
        seed = 5000 + 10 * number
        alone.append(engine.ask("first_token", context=100, others=0, other_context=0, seed=seed)["seconds"])
        behind.append(engine.ask("first_token", context=100, others=8, other_context=2000, seed=seed + 1)["seconds"])
        quiet += engine.ask("gaps", context=100, n=100, other_context=0, seed=seed + 2)["seconds"]
        busy += engine.ask("gaps", context=100, n=100, other_context=2000, seed=seed + 3)["seconds"]
    ratio = median(b / a for a, b in zip(alone, behind, strict=True))
    slowest = _p99(busy) / median(quiet)
    return [
        (
            f"time to first token of 100 tokens behind eight prompts of 2,000 (alone {1e3 * median(alone):.0f} ms)",
            f"{1e3 * median(behind):.0f} ms, {ratio:.2f} times",
            Goal(3.0, at_least=False).verdict(ratio),
        ),
        (
            f"time between tokens while 2,000 tokens are prefilled, p99 (alone {1e3 * median(quiet):.1f} ms)",
            f"{1e3 * _p99(busy):.1f} ms, {slowest:.2f} times",
            Goal(5.0, at_least=False).verdict(slowest),
        ),
    ]


def _repeated_prompts(engine: Engine, rounds: int) -> list[tuple[str, ...]]:
    firsts, seconds = [], []
    for number in range(rounds):
        first, second = engine.ask("repeated", context=1000, question=16, seed=9000 + number)["seconds"]
        firsts.append(first)
        seconds.append(second)
    ratio = median(b / a for a, b in zip(firsts, seconds, strict=True))
    what = (
        f"time to first token behind 1,000 tokens that were there before (the first time {1e3 * median(firsts):.0f} ms)"
    )
    return [(what, f"{1e3 * median(seconds):.1f} ms, {ratio:.3f} times", Goal(0.1, at_least=False).verdict(ratio))]


def _lookup(engine: Engine, model: Path, threads: int, rounds: int) -> list[tuple[str, ...]]:
    """Prompt lookup on an answer that repeats its prompt; the two settings take turns, in the same process."""
    times: dict[int, list[float]] = {0: [], GAMMA: []}
    answers = set()
    for _ in range(rounds):
        for gamma, seconds in times.items():
            engine.ask("load", model=str(model), threads=threads, gamma=gamma)
            engine.ask("copying", text=QUOTED, n=TOKENS)
            result = engine.ask("copying", text=QUOTED, n=4 * TOKENS)
            seconds.append(result["seconds"])
            answers.add(result["answer"])
    if len(answers) != 1:
        raise BenchError("speculation changed the answer")
    ratio = median(a / b for a, b in zip(times[0], times[GAMMA], strict=True))
    what = f"an answer that repeats a text of the prompt: speed with prompt lookup (gamma {GAMMA}) over without"
    return [(what, f"{ratio:.2f} times", Goal(1.6).verdict(ratio))]


def _kv_precision(engine: Engine, model: Path, threads: int) -> list[tuple[str, ...]]:
    """Divergence of the distributions that keys and values in fewer bits cause, the activations being nearly exact.

    With int8 activations any change, f16 keys and values included, moves roundings and with them the logits by more
    than this: that would measure the activations.
    """
    text = "\n".join(path.read_text("utf-8") for path in sorted(DOCUMENTS.glob("*.md")))
    found: dict[str, npt.NDArray[np.float64]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for kv in ("f32", "f16", "int8", "mixed"):
            engine.ask("load", model=str(model), threads=threads, activations="int16", kv=kv)
            engine.ask("log_probabilities", text=text, n=4000, to=f"{folder}/{kv}.npy")
            found[kv] = np.load(f"{folder}/{kv}.npy").astype(np.float64)
    exact = found.pop("f32")
    rows = []
    for kv, values in found.items():
        divergence = float((np.exp(exact) * (exact - values)).sum(axis=1).mean())
        share = head_bytes(HEAD_DIM, kv) / head_bytes(HEAD_DIM, "f32")
        goal = Goal(1e-3, at_least=False).verdict(divergence) if kv == "int8" else ""
        what = f"keys and values as {kv}, 4,000 tokens of text: memory over f32's, mean KL divergence from f32's"
        rows.append((what, f"{share:.2f}, {divergence:.1e}", goal))
    return rows


def _p99(values: list[float]) -> float:
    return sorted(values)[int(0.99 * (len(values) - 1))]


if __name__ == "__main__":
    sys.exit(main())
