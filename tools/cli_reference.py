"""Writes docs/cli.md, the reference of the command line, from the commands themselves.

Usage: `python -m tools.cli_reference` (`make docs`); with `--check` it writes nothing and fails when the file is old.
"""

import re
import sys
from dataclasses import fields
from pathlib import Path

from modelc.benchmark.samples import Result
from modelc.cli import app
from modelc.hub.huggingface import HubModel
from modelc.inventory import StoredVersion
from modelc.settings import KEYS
from modelc.summary import QuantSize, Summary, TensorSummary

PATH = Path("docs", "cli.md")
HEAD = """# Command line

Made by `make docs` from the commands; do not edit it. `modelc COMMAND --help` shows the same.

A MODEL is a name in the store (`name`, or `name:version`), a `.modelc`, or any weights file or folder; the latter are
packed into the cache on the way.
"""
EXIT_CODES = f"""## Exit codes

| code | meaning |
|--:|---|
| 0 | done |
| {app.EXIT_ERROR} | an error: one line on standard error says what, where, and the next step |
| {app.EXIT_USAGE} | the command line, a setting or a value is wrong |
| {app.EXIT_INTERRUPTED} | interrupted (Ctrl-C) |
| {app.EXIT_BROKEN_PIPE} | who read the output went away |
| {app.EXIT_TERMINATED} | told to end (SIGTERM); a server ends with 0 |

Progress bars and colours appear on terminals only; `NO_COLOR` turns colours off. Everything that is not the result goes
to standard error, so that results can be piped.
"""
OUTPUT = """## JSON

What `--json` prints is one JSON value in one line. Fields may be added; those listed here stay as they are. Sizes are
bytes, times seconds unless the name says otherwise; what is not known is null.
"""
SHAPES = (
    ("`list`, `search`", "a list, one object for each version", StoredVersion),
    ("`search --hub`", "a list, one object for each model", HubModel),
    ("`inspect`", "an object", Summary),
    ("`inspect`: each of `tensors`", "an object", TensorSummary),
    ("`inspect --quant-sizes`", "a list, one object for each type", QuantSize),
)
OTHER_SHAPES = (
    ("`verify`", "an object", ("path", "ok", "tensors (how many; when ok)", "error, tensor (when not)")),
    (
        "`bench`",
        "an object",
        ("modelc", "git_sha", "platform", "model", "kv", "activations", "results (a list; see the next row)"),
    ),
    (
        "`bench`: each of `results`",
        "an object",
        (*(field.name for field in fields(Result)), "mean", "median", "spread"),
    ),
    ("`config`", "an object: for each setting an object", ("value", "source")),
)


def reference() -> str:
    """The whole text."""
    whole = app.make_app().generate_docs(heading_level=1, usage_name="modelc")
    described = {text.partition("\n")[0]: text for text in re.split(r"^## modelc ", whole, flags=re.MULTILINE)}
    parts = [HEAD, _contents()]
    for name in app.COMMANDS:
        examples = app.load_command(name)[1]
        parts.append("\n\n".join([_tidied(described[name]), *map(_paragraph, examples.split("\n\n"))]) + "\n")
    return "\n".join([*parts, EXIT_CODES, OUTPUT, _shapes(), _settings()]).rstrip() + "\n"


def _contents() -> str:
    links = ", ".join(f"[{name}](#modelc-{name})" for name in app.COMMANDS)
    return f"{links}; [exit codes](#exit-codes), [JSON](#json), [settings](#settings)\n"


def _tidied(text: str) -> str:
    """With its heading, without escapes that Markdown does not need, and without how this program was started."""
    text = re.sub(r"(?m)^(modelc \S+) -m \S+", r"\1", text.replace("\\[", "["))
    return "## modelc " + re.sub(r"\n{3,}", "\n\n", text).strip()


def _paragraph(text: str) -> str:
    """Commands under a title as a block of code, anything else as it is."""
    title, *commands = text.splitlines()
    if not commands:
        return text
    lines = "\n".join(line.removeprefix("  ") for line in commands)
    return f"**{title.rstrip(':')}**:\n\n```sh\n{lines}\n```"


def _shapes() -> str:
    rows = [(what, form, tuple(field.name for field in fields(kind))) for what, form, kind in SHAPES]
    lines = ["| command | form | fields |", "|---|---|---|"]
    lines += [f"| {what} | {form} | {', '.join(names)} |" for what, form, names in (*rows, *OTHER_SHAPES)]
    return "\n".join(lines) + "\n"


def _settings() -> str:
    where = "In `~/.modelc/config.toml`, or in the environment, which wins; flags win over both."
    lines = ["## Settings", "", where, "", "| key | environment |", "|---|---|"]
    return "\n".join([*lines, *(f"| `{key}` | `MODELC_{key.upper()}` |" for key in KEYS)])


def main() -> int:
    """Write the file, or check it."""
    text = reference()
    if "--check" in sys.argv[1:]:
        if PATH.exists() and PATH.read_text("utf-8") == text:
            return 0
        print(f"{PATH} is not what the commands say: run `make docs`", file=sys.stderr)
        return 1
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
