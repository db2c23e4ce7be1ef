"""A model card: what a file says about its model, in Markdown, ready to be completed by its owner."""

from __future__ import annotations

import re
from collections import Counter

from modelc.ir import JSON
from modelc.summary import Summary

# GGUF's keys for a model's description, and what stands for them in a Safetensors file.
_TITLE_KEYS = ("general.name", "general.basename")
_LICENSE_KEYS = ("general.license", "license")
_TEXT_KEYS = ("general.description", "description")
_FACTS = (
    ("Author", ("general.author", "general.organization", "author")),
    ("Source", ("general.source.url", "general.source.huggingface.repository", "general.url")),
    ("Context length", ("{arch}.context_length", "config.max_position_embeddings")),
    ("Layers", ("{arch}.block_count", "config.num_hidden_layers")),
    ("Hidden size", ("{arch}.embedding_length", "config.hidden_size")),
    ("Vocabulary", ("{arch}.vocab_size", "config.vocab_size")),
)


def model_card(summary: Summary) -> str:
    """The card, with YAML front matter as model hubs read it; ends with a line break."""
    title = _first(summary, _TITLE_KEYS) or summary.name
    facts = [
        ("Architecture", summary.architecture),
        ("Parameters", f"{summary.parameters:,}"),
        ("Size of the tensors", f"{summary.total_bytes / 1e6:,.1f} MB"),
        ("Weights", summary.quantization),
        ("Format", _format_text(summary)),
    ]
    facts += [(label, text) for label, keys in _FACTS if (text := _first(summary, keys))]
    lines = ["---", f"license: {_yaml(_first(summary, _LICENSE_KEYS) or 'unknown')}", "tags:", "- modelc"]
    if summary.architecture != "unknown":
        lines.append(f"- {_yaml(summary.architecture)}")
    lines += ["---", "", f"# {_line(title)}", ""]
    description = _first(summary, _TEXT_KEYS)
    if description:
        lines += [_line(description), ""]
    lines += ["| | |", "|---|---|", *(f"| {label} | {_cell(text)} |" for label, text in facts), ""]
    lines += ["## Use", "", "```sh", f"modelc run {_shell(summary.path)}", "```", ""]
    lines += ["## Tensors", "", "| type | tensors | parameters | bytes |", "|---|--:|--:|--:|"]
    lines += [f"| {dtype} | {n:,} | {params:,} | {size:,} |" for dtype, n, params, size in _by_type(summary)]
    return "\n".join(lines) + "\n"


def _by_type(summary: Summary) -> list[tuple[str, int, int, int]]:
    count: Counter[str] = Counter()
    params: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for tensor in summary.tensors:
        count[tensor.dtype] += 1
        params[tensor.dtype] += tensor.parameters
        sizes[tensor.dtype] += tensor.bytes
    return [(dtype, count[dtype], params[dtype], sizes[dtype]) for dtype in sorted(count, key=lambda d: (-sizes[d], d))]


def _format_text(summary: Summary) -> str:
    made_from = "" if summary.format == summary.source_format else f", from {summary.source_format}"
    return summary.format + made_from + ("" if summary.compression == "none" else f", {summary.compression}")


def _first(summary: Summary, keys: tuple[str, ...]) -> str:
    """The first of these metadata that is a text or a number; `config.x` is a field of an object."""
    for template in keys:
        key = template.format(arch=summary.architecture)
        value: JSON = summary.metadata.get(key)
        if value is None and key.startswith("config."):
            config = summary.metadata.get("config")
            value = config.get(key.removeprefix("config.")) if isinstance(config, dict) else None
        if isinstance(value, str | int | float) and not isinstance(value, bool) and value != "":
            return f"{value:,}" if isinstance(value, int) else str(value)
    return ""


def _line(text: str) -> str:
    """One line that cannot end the paragraph or begin something else, and shows no control characters."""
    words = "".join(c if c.isprintable() else " " for c in text).split()
    return re.sub(r"([\\`*_<>\[\]#|])", r"\\\1", " ".join(words))


def _cell(text: str) -> str:
    return _line(text) or "-"


def _yaml(text: str) -> str:
    plain = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", text)
    return text if plain else '"' + re.sub(r"[^\w .,:/()-]", " ", text) + '"'


def _shell(path: str) -> str:
    """The path in one word of a shell, without anything that could leave the code block."""
    name = "".join(c if c.isprintable() and c != "`" else "?" for c in path)
    return name if re.fullmatch(r"[\w./:@%+,-]+", name) else "'" + name.replace("'", "'\\''") + "'"
