"""`modelc config`."""

import json
from typing import Annotated

from cyclopts import Parameter

from modelc.cli.options import JsonFlag
from modelc.cli.text import printable, table, terminal_width
from modelc.errors import BadInputError, did_you_mean
from modelc.settings import KEYS, effective_settings

EXAMPLES = """Examples:
  modelc config
  modelc config store
  modelc config --json"""
SECRETS = ("api_key",)


def config(
    key: Annotated[str | None, Parameter(help="Print the value of this setting alone.")] = None,
    /,
    *,
    json_: JsonFlag = False,
) -> None:
    """Show the settings that hold here, and where each comes from: built in, config file or environment."""
    if key is not None and key not in KEYS:
        hint = did_you_mean(key, KEYS) or f"the settings are {', '.join(KEYS)}"
        raise BadInputError("no such setting", got=repr(key), hint=hint)
    found = {name: setting for name, setting in effective_settings().items() if key in (None, name)}
    texts = {name: _text(name, setting.value) for name, setting in found.items()}
    if json_:
        print(json.dumps({name: {"value": texts[name], "source": found[name].source} for name in found}))
    elif key is not None:
        print("" if texts[key] is None else printable(str(texts[key])))
    else:
        rows = [[name, "-" if text is None else str(text), found[name].source] for name, text in texts.items()]
        print(table(["KEY", "VALUE", "SOURCE"], rows, width=terminal_width()))


def _text(name: str, value: object) -> str | int | None:
    """The value as it may be shown."""
    if name in SECRETS and value is not None:
        return "(set)"
    return value if value is None or isinstance(value, int) else str(value)
