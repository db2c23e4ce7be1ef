"""Measures modelc beside llama.cpp and OpenVINO GenAI on this machine.

Prints tables, and writes every sample to a JSON file in bench/results.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import sys
import time
from pathlib import Path

from bench import accuracy, startup
from bench.compare import IdleWatch, compare
from bench.engines import LLAMA_CPP, MODELC, OPENVINO, PEERS, BenchError, Engine, EngineKind, running
from bench.machine import describe_machine, own_versions
from bench.models import NAMES, PUBLISHED, REQUANTIZED, ModelFiles, prepare
from bench.report import markdown, tables
from bench.results import Results, Start

FOLDER = Path(__file__).parent
PAGE = FOLDER / "RESULTS.md"
PARTS = ("speed", "accuracy", "start")


def main() -> int:
    """Measure, or take what was measured before; show it; return the exit code."""
    options = _parse()
    try:
        if options.show is not None:
            results = _earlier(options.show)
        else:
            results = _measure(options)
            _save(results)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print("\n\n".join(table.as_text() for table in tables(results)))
    if options.record:
        PAGE.write_text(markdown(results), "utf-8")
        _say(f"recorded in {PAGE}")
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    add = parser.add_argument
    add("--quick", action="store_true", help="one round, one start: shows that everything works, not how fast it is")
    add("--rounds", type=_positive, default=5, help="samples of each speed (default 5)")
    add("--models", nargs="+", choices=NAMES, default=NAMES, help="which of the model's weight types (default all)")
    add("--threads", nargs="+", type=_positive, default=(1, 2), help="numbers of threads (default 1 2)")
    add("--parts", nargs="+", choices=PARTS, default=PARTS, help="what to measure (default all)")
    add("--record", action="store_true", help="write the tables to bench/RESULTS.md")
    add("--show", type=Path, metavar="FILE", help="measure nothing, take the JSON file of an earlier run")
    options = parser.parse_args()
    if options.quick:
        options.rounds = 1
    return options


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _earlier(path: Path) -> Results:
    try:
        return Results.from_json(path.read_text("utf-8"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchError(f"{path} is not the result of an earlier run: {error}") from error


def _measure(options: argparse.Namespace) -> Results:
    names = [name for name in NAMES if name in options.models]
    results = Results(datetime.date.today().isoformat(), options.rounds, describe_machine(), own_versions(), {})
    with contextlib.ExitStack() as stack:
        engines = [stack.enter_context(running(kind)) for kind in _available()]
        for engine in engines:
            about = engine.ask("about")
            results.versions[engine.name], results.details[engine.name] = about["version"], about["detail"]
        llama_cpp = next((engine for engine in engines if engine.name == LLAMA_CPP.name), None)
        if llama_cpp is None:
            names = [name for name in names if name not in REQUANTIZED]
        files = {name: prepare(name, llama_cpp) for name in {PUBLISHED: None, **dict.fromkeys(names)}}
        if "speed" in options.parts:
            _measure_speed(results, engines, [files[name] for name in names], options)
        if "accuracy" in options.parts:
            results.divergences = _measure_accuracy(engines[0], llama_cpp, files[PUBLISHED])
    if "start" in options.parts:
        results.start = _measure_start(files[PUBLISHED], options.quick)
    return results


def _available() -> list[EngineKind]:
    if PEERS.exists():
        return [MODELC, LLAMA_CPP, OPENVINO]
    _say("the other engines are not set up (`make peers`): measuring modelc alone, with the published models")
    return [MODELC]


def _measure_speed(
    results: Results, engines: list[Engine], models: list[ModelFiles], options: argparse.Namespace
) -> None:
    idle = IdleWatch()
    for model in models:
        for threads in options.threads:
            start = time.perf_counter()
            results.comparisons.append(compare(engines, model, threads, options.rounds, idle))
            _say(f"{model.name}, threads {threads}: measured in {time.perf_counter() - start:.0f} s")
    results.idle_shares = idle.shares()


def _measure_accuracy(modelc: Engine, llama_cpp: Engine | None, model: ModelFiles) -> dict[str, float]:
    cases = accuracy.reference_cases()
    found = {}
    for activations in ("int8", "int16"):
        asked = {"model": str(model.packed), "activations": activations}
        found[f"modelc {activations}"] = accuracy.mean_divergence(cases, _log_probs(modelc, **asked))
    if llama_cpp is not None:
        llama_cpp.ask("load", model=str(model.gguf), threads=1)
        found[llama_cpp.name] = accuracy.mean_divergence(cases, _log_probs(llama_cpp))
    _say("accuracy: measured")
    return found


def _log_probs(engine: Engine, **asked: str) -> accuracy.LogProbs:
    return lambda ids, wanted: engine.ask("log_probs", ids=ids, wanted=wanted, **asked)["rows"]


def _measure_start(model: ModelFiles, quick: bool) -> Start:
    startup.first_token_s(model.packed)  # the kernels are cached from here on
    start = Start(
        help_s=startup.repeated(startup.help_s, 3 if quick else 9),
        first_token_s=startup.repeated(lambda: startup.first_token_s(model.packed), 1 if quick else 5),
        first_start_s=startup.repeated(lambda: startup.first_start_s(model.packed), 1 if quick else 3),
        open_gguf_s=startup.repeated(lambda: startup.open_gguf_s(model.gguf), 3 if quick else 9),
        memory=startup.memory_of_run(model.packed),
    )
    _say("start and memory: measured")
    return start


def _save(results: Results) -> None:
    folder = FOLDER / "results"
    folder.mkdir(exist_ok=True)
    path = folder / f"{datetime.datetime.now():%Y%m%d-%H%M%S}.json"
    path.write_text(results.to_json(), "utf-8")
    _say(f"every sample is in {path}")


def _say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
