"""`modelc bench`."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from modelc.cli.loading import load_model
from modelc.cli.options import (
    ActivationsOption,
    JsonFlag,
    KvOption,
    ModelOption,
    StoreOption,
    open_store,
    parse_numbers,
)
from modelc.cli.progress import ProgressBar
from modelc.cli.text import bytes_text, count_text, printable, table, terminal_width
from modelc.errors import BadInputError
from modelc.resolve import find_model
from modelc.settings import load_settings

if TYPE_CHECKING:
    from modelc.benchmark import Result
    from modelc.summary import Summary

EXAMPLES = """Examples:
  modelc bench smollm2
  modelc bench smollm2 --threads 1,2 --prompt 512 --generate 128 --depth 0,1024
  modelc bench smollm2 --json | jq '.results[] | {test, mean}'

ppN reads a prompt of N tokens, tgN writes N tokens, @ dN behind N tokens of context; as llama-bench has them."""
HEADER = ["TEST", "THREADS", "MEAN ± SPREAD", "MEDIAN", "UNIT"]


def bench(
    model: Annotated[ModelOption, Parameter(help="A name in the store (NAME or NAME:VERSION), or a model file.")],
    /,
    *,
    prompt: Annotated[int, Parameter(help="Tokens of a prompt, 0 for none.", validator=Number(gte=0))] = 512,
    generate: Annotated[int, Parameter(help="Tokens to generate, 0 for none.", validator=Number(gte=0))] = 128,
    threads: Annotated[str | None, Parameter(help="Numbers of threads, like 1,2,4. [default: as `run`]")] = None,
    depth: Annotated[str, Parameter(help="Tokens of context before those that are measured, like 0,1024.")] = "0",
    repeat: Annotated[int, Parameter(help="Repetitions of each test.", validator=Number(gte=1, lte=1000))] = 5,
    batch: Annotated[
        int, Parameter(help="Inputs of a call, for models without text.", validator=Number(gte=1, lte=65536))
    ] = 32,
    kv: KvOption = None,
    activations: ActivationsOption = "int8",
    json_: JsonFlag = False,
    markdown: Annotated[bool, Parameter(negative="", show_default=False, help="Print a Markdown table.")] = False,
    store: StoreOption = None,
) -> None:
    """Measure a model on this machine: loading, first token, prompts, generation, memory."""
    if json_ and markdown:
        raise BadInputError("one form of output is enough", param="--json, --markdown")
    settings = load_settings()
    path = find_model(model, open_store(store, settings))
    given_threads = parse_numbers(threads, "--threads", 1, 255) if threads is not None else ()
    depths = parse_numbers(depth, "--depth", 0, 1 << 24)
    from modelc import summary
    from modelc.benchmark import Plan, benchmark
    from modelc.resolve import as_modelc
    from modelc.runtime.threads import default_threads

    teams = given_threads or (settings.threads or default_threads(),)
    plan = Plan(prompt, generate, teams, depths, repeat, batch)
    with ProgressBar() as bar:
        packed = as_modelc(path, bar)
    what = summary.inspect(packed)
    results = []
    with ProgressBar(str) as bar:
        for result in benchmark(lambda n: load_model(packed, threads=n, kv=kv, activations=activations), plan):
            results.append(result)
            bar(len(results), 0, f"measured {result.test}, {result.threads} threads")
    if json_:
        print(json.dumps(_json(what, results, kv, activations)))
    elif markdown:
        print(_markdown(what, results))
    else:
        print(f"{_model_text(what)}\n")
        rows = [[r.test, str(r.threads), _mean_text(r), f"{r.median:.4g}", r.unit] for r in results]
        gives_way = ["MEDIAN", "THREADS"]
        print(table(HEADER, rows, right="THREADS MEDIAN", width=terminal_width(), gives_way=gives_way))


def _model_text(what: Summary) -> str:
    size = f"{count_text(what.parameters)} parameters, {what.quantization}, {bytes_text(what.file_bytes)}"
    return f"{printable(what.name)}: {what.architecture}, {size}"


def _mean_text(result: Result) -> str:
    digits = min(max(3 - math.floor(math.log10(result.mean)), 0), 9) if result.mean > 0 else 0
    return f"{result.mean:.{digits}f} ± {result.spread:.{digits}f}"


def _markdown(what: Summary, results: Sequence[Result]) -> str:
    lines = ["| model | size | params | threads | test | mean ± spread | unit |", "|---|--:|--:|--:|---|--:|---|"]
    name = printable(f"{what.name} {what.quantization}").replace("|", "\\|")
    model = f"| {name} | {bytes_text(what.file_bytes)} | {count_text(what.parameters)}"
    lines += [f"{model} | {r.threads} | {r.test} | {_mean_text(r)} | {r.unit} |" for r in results]
    return "\n".join(lines)


def _json(what: Summary, results: Sequence[Result], kv: str | None, activations: str) -> dict[str, Any]:
    from modelc.version import __version__, git_sha

    facts = ("name", "architecture", "parameters", "file_bytes", "quantization")
    return {
        "modelc": __version__,
        "git_sha": git_sha(),
        "platform": sys.platform,
        "model": {fact: getattr(what, fact) for fact in facts},
        "kv": kv or "f16",
        "activations": activations,
        "results": [result.to_json() for result in results],
    }
