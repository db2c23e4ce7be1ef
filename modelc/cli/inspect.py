"""`modelc inspect`."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from modelc.cli.options import JsonFlag, ModelOption, StoreOption, open_store
from modelc.cli.text import GAP, bytes_text, count_text, printable, shortened, table, terminal_width
from modelc.errors import BadInputError, NotFoundError, did_you_mean
from modelc.resolve import find_model

if TYPE_CHECKING:
    from modelc.onnx import Description
    from modelc.summary import QuantSize, Summary

EXAMPLES = """Examples:
  modelc inspect SmolLM2-135M-Instruct.Q4_1.gguf
  modelc inspect smollm2 --tensors 'blk.0.*'
  modelc inspect smollm2 --json | jq .parameters
  modelc inspect smollm2 --quant-sizes
  modelc inspect smollm2 --readme > README.md"""
SHOWN_ITEMS = 4  # of a list in the metadata
SHOWN_CHARS = 160  # of a metadata line where standard output is not a terminal


def inspect(
    path: Annotated[ModelOption, Parameter(help="A model file or folder, or a name in the store.")],
    /,
    *,
    tensors: Annotated[str | None, Parameter(help="Only tensors whose names match this pattern (* ? []).")] = None,
    quant_sizes: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="Instead: what the tensors would take as fp32, fp16, int8, int4 and q4_0.",
        ),
    ] = False,
    readme: Annotated[
        bool, Parameter(negative="", show_default=False, help="Instead: a model card in Markdown.")
    ] = False,
    format: Annotated[
        str | None, Parameter(name=["--format", "-f"], help="The file's format, where nothing else tells it.")
    ] = None,
    json_: JsonFlag = False,
    store: StoreOption = None,
) -> None:
    """Show what is in a model file: name, architecture, sizes, tensors, metadata."""
    if readme and (quant_sizes or json_):
        raise BadInputError("a model card cannot be combined", param="--readme", got="--quant-sizes or --json")
    found = find_model(path, open_store(store))
    from modelc import summary

    model = summary.inspect(found, format)
    if tensors is not None:
        matching = tuple(tensor for tensor in model.tensors if fnmatchcase(tensor.name, tensors))
        if not matching:
            hint = did_you_mean(tensors, [tensor.name for tensor in model.tensors])
            raise NotFoundError("no tensor matches", path=path, got=repr(tensors), hint=hint)
        model = replace(model, tensors=matching)
    if readme:
        from modelc.model_card import model_card

        print(model_card(model), end="")
    elif quant_sizes:
        sizes = summary.quant_sizes(model)
        print(json.dumps([asdict(size) for size in sizes]) if json_ else _sizes_text(model, sizes))
    else:
        print(json.dumps(model.to_json(), allow_nan=False) if json_ else _text(model))


def _sizes_text(model: Summary, sizes: list[QuantSize]) -> str:
    now = sum(tensor.bytes for tensor in model.tensors)
    rows = [["now", f"{now / 1e6:.2f}", ""]]
    rows += [[size.dtype, f"{size.bytes / 1e6:.2f}", f"{size.change_percent:+.1f}"] for size in sizes]
    return table(["TYPE", "MB", "CHANGE%"], rows, right="MB CHANGE%")


def _text(model: Summary) -> str:
    made_from = "" if model.format == model.source_format else f" (from {model.source_format})"
    head = {
        "name": model.name,
        "architecture": model.architecture,
        "format": model.format + made_from,
        "compression": model.compression,
        "quantization": model.quantization,
        "parameters": f"{count_text(model.parameters)} ({model.parameters:,})",
        "total size": f"{bytes_text(model.total_bytes)} ({model.total_bytes:,} bytes)",
    }
    rows = [
        [tensor.name, tensor.dtype, "x".join(map(str, tensor.shape)) or "scalar", bytes_text(tensor.bytes)]
        for tensor in model.tensors
    ]
    parts = [_pairs(head)]
    if model.graph is not None:
        parts.append(_graph_text(model.graph))
    if rows:
        parts.append(table(["TENSOR", "TYPE", "SHAPE", "SIZE"], rows, right="SIZE", width=terminal_width()))
    from modelc.formats.onnx_plan import KEY as PLAN  # late: formats take long to import

    shown = {key: _value_text(value) for key, value in model.metadata.items() if key != PLAN}
    if shown:
        parts.append("METADATA\n" + _pairs(shown))
    return "\n\n".join(parts)


def _graph_text(graph: Description) -> str:
    values = [["in", each.name, str(each)] for each in graph.inputs]
    values += [["out", each.name, str(each)] for each in graph.outputs]
    operators = ", ".join(f"{name} {count}" for name, count in graph.operators.items())
    found = {"operators": operators, "not supported": ", ".join(graph.unsupported) or "none"}
    return table(["GRAPH", "NAME", "VALUE"], values, width=terminal_width()) + "\n" + _pairs(found)


def _pairs(values: dict[str, str]) -> str:
    width = terminal_width() or SHOWN_CHARS
    names = {key: shortened(printable(key), width // 2) for key in values}
    column = max(map(len, names.values()))
    lines = [f"{names[key].ljust(column)}{GAP}{printable(value)}" for key, value in values.items()]
    return "\n".join(shortened(line, width) for line in lines)


def _value_text(value: Any) -> str:
    if not isinstance(value, list):
        return value if isinstance(value, str) else json.dumps(value)
    shown = ", ".join(json.dumps(item, ensure_ascii=False) for item in value[:SHOWN_ITEMS])
    return f"[{shown}, … {len(value):,} values]" if len(value) > SHOWN_ITEMS else f"[{shown}]"
