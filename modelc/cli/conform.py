"""`modelc conform`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from modelc.cli.options import JsonFlag, ModelOption, StoreOption, open_store
from modelc.cli.progress import ProgressBar
from modelc.cli.text import bytes_text, printable
from modelc.errors import BadInputError
from modelc.resolve import find_model

EXAMPLES = """Examples:
  modelc conform smollm2 ./model-serve.pyz
  modelc conform smollm2 ./model-serve.pyz --isa generic,avx2,avx512 --threads 1,2,3
  modelc conform http://127.0.0.1:8080 http://127.0.0.1:8081"""
URL = "http://"
NOT_FOR_BOTH = ("--bind", "--port", "--api-key", "--isa")  # options in a file that do not change what `run` answers
INFO_S = 60


def conform(
    run: Annotated[ModelOption, Parameter(help="The model as `modelc run` takes it, or the URL of a server.")],
    compiled: Annotated[str, Parameter(help="The compiled file, or the URL of a server.")],
    /,
    *,
    isa: Annotated[
        str | None, Parameter(help="Instruction sets for the compiled file, like generic,avx2. [default: the best]")
    ] = None,
    threads: Annotated[
        str | None, Parameter(help="Numbers of threads for the compiled file, like 1,2,3. [default: its own]")
    ] = None,
    max_tokens: Annotated[int, Parameter(help="Length of answers.", validator=Number(gte=4))] = 12,
    json_: JsonFlag = False,
    store: StoreOption = None,
) -> int:
    """Ask a model and its compiled file the same, and compare every byte of the answers but ids and times.

    The model is served with the options that the file has built in. The exit code is 0 where all answers are the same,
    1 where one differs or a server cannot be asked, 2 for wrong arguments.
    """
    from modelc.conforming import Served, compare, requests_for
    from modelc.conforming.comparison import answers_of

    if compiled.startswith(URL) and (isa or threads):
        raise BadInputError("a server that runs already has its own", param="--isa" if isa else "--threads")
    configurations = _configurations(isa, threads)
    with Served(_run_command(run, compiled, store)) as served:
        requests = requests_for(_n_inputs(served), max_tokens)
        with ProgressBar(str) as bar:
            bar(0, len(requests), "asking the model")
            expected = answers_of(served, requests)
    rows: list[dict[str, Any]] = []
    for options in configurations:
        command = compiled if compiled.startswith(URL) else [_path_of(compiled), *options]
        with Served(command) as served, ProgressBar(str) as bar:
            report = compare(expected, served, requests, lambda done, total: bar(done, total, "comparing"))
        differences = [
            {"request": each.request, "how": each.how, "expected": each.expected, "got": each.got}
            for each in report.differences
        ]
        rows.append(
            {
                "options": " ".join(options),
                "requests": report.requests,
                "bytes": report.compared_bytes,
                "statuses": {str(status): count for status, count in sorted(report.statuses.items())},
                "differences": differences,
                "builds": report.builds,
            }
        )
        if not json_:
            _print_row(rows[-1])
    if json_:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
    return int(any(row["differences"] for row in rows))


def _run_command(run: str, compiled: str, store: Path | None) -> list[str] | str:
    if run.startswith(URL):
        return run
    options = [] if compiled.startswith(URL) else _built_in(_path_of(compiled))
    found = find_model(run, open_store(store))
    return [sys.executable, "-m", "modelc", "run", str(found), *options]


def _built_in(compiled: str) -> list[str]:
    """The options that a compiled file says it has; none where it says nothing: why shows when it is started."""
    try:
        asked = subprocess.run([compiled, "--info"], capture_output=True, timeout=INFO_S, check=True)
        options: list[list[str]] = json.loads(asked.stdout)["options"]
    except (OSError, subprocess.SubprocessError, ValueError, KeyError):
        return []
    return [token for option in options if option[0] not in NOT_FOR_BOTH for token in option]


def _path_of(compiled: str) -> str:
    path = Path(compiled)
    if not path.is_file():
        raise BadInputError("no such compiled file", param="COMPILED", got=compiled)
    return os.path.abspath(path)  # noqa: PTH100 - a link to the file stays what it is


def _configurations(isa: str | None, threads: str | None) -> Sequence[list[str]]:
    isas = [["--isa", name.strip()] for name in isa.split(",")] if isa else [[]]
    numbers = [count.strip() for count in threads.split(",")] if threads is not None else []
    if not all(re.fullmatch("[1-9][0-9]{0,2}", number) for number in numbers):
        raise BadInputError("not numbers of threads", param="--threads", got=repr(threads), expected="like 1,2,3")
    counts = [["--threads", number] for number in numbers] or [[]]
    return [[*first, *second] for first, second in product(isas, counts)]


def _n_inputs(served: Any) -> int:
    """How many numbers the model takes at `/infer`: it says so when it is given another number of them."""
    from modelc.conforming.requests import Request

    answer = served.ask(Request("how many", "POST", "/infer", {"input": [0.0] * 3}))
    found = re.search(rb"(\d+) numbers", answer.body)
    return int(found[1]) if answer.status == 400 and found else 3


def _print_row(row: dict[str, Any]) -> None:
    verdict = f"{len(row['differences'])} differ" if row["differences"] else "the same"
    statuses = ", ".join(f"{count} with {status}" for status, count in row["statuses"].items())
    compared = f"{row['requests']} answers ({statuses}), {bytes_text(row['bytes'])}"
    print(f"{row['options'] or 'as it starts'}: {compared}: {verdict}")
    if row["builds"] is not None:
        print(f"  note: the versions are {' and '.join(map(printable, row['builds']))}")
    for each in row["differences"]:
        print(f"  {each['request']} ({each['how']})")
        print(f"    expected …{printable(each['expected'])}…")
        print(f"    got      …{printable(each['got'])}…")
