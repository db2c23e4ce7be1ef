"""Results as tables: for the terminal, and as the Markdown of RESULTS.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench import goals
from bench.compare import Comparison
from bench.engines import LLAMA_CPP, MODELC, OPENVINO
from bench.figures import Figure
from bench.goals import Goal
from bench.results import Results, Start

PEERS = (LLAMA_CPP.name, OPENVINO.name)
BUSY_SHARE = 0.02  # of a core; an engine that does more in others' turns disturbs them
INTRODUCTION = """# Figures

modelc beside other engines, on one machine, in one run. `make peers`, then `make bench BENCH=--record`, makes this page
anew.

Every engine is a process of its own that holds the same weights. They take turns, measure by measure; rounds: {rounds},
each begun by another engine. A figure is the median of the rounds (lowest to highest), a ratio the median of the
rounds' ratios. Prompts are random token ids, new in each round.

- *prefill 512*: a prompt of 512 tokens, from nothing to the choice of the next token.
- *decode at N*: 64 tokens, greedily, one after another, after N others.
- *stream-read*: the bytes of the weights read in order, by as many threads, and nothing done with them.

SmolLM2-135M-Instruct is published as Q4_1, Gemma-3-270M as Q4_K_M. The other types are made from SmolLM2 by llama.cpp's
quantizer, which gives most matrices of Q4_K_M other types (Q5_0, Q8_0), as their 576 columns are no multiple of 256.
"""


@dataclass(frozen=True, slots=True)
class Table:
    """A titled table of texts."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def as_text(self) -> str:
        """For a terminal: columns padded, no lines between."""
        widths = [max(len(row[i]) for row in (self.head, *self.rows)) for i in range(len(self.head))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (self.head, *self.rows)
        ]
        return "\n".join([self.title, *(f"  {line}" for line in lines)])

    def as_markdown(self) -> str:
        """As a section with a Markdown table."""
        rows = [self.head, ("---",) * len(self.head), *self.rows]
        return "\n".join([f"## {self.title}", "", *("| " + " | ".join(row) + " |" for row in rows)])


def tables(results: Results) -> Iterator[Table]:
    """All tables of a run; parts that were left out have none."""
    if results.comparisons:
        yield speed_table(results.comparisons)
        yield _limits_table(results.comparisons)
    if results.start is not None:
        yield _start_table(results.start)
    if results.divergences:
        yield _accuracy_table(results.divergences)
    yield _conditions_table(results)


def markdown(results: Results) -> str:
    """The whole of RESULTS.md."""
    parts = [INTRODUCTION.format(rounds=results.rounds), *(table.as_markdown() + "\n" for table in tables(results))]
    return "\n".join(parts)


def speed_table(comparisons: Sequence[Comparison]) -> Table:
    """Tokens per second of all engines."""
    peers = [peer for peer in PEERS if any(peer in by_engine for c in comparisons for by_engine in c.speeds.values())]
    head = ("model", "threads", "tokens/s", MODELC.name, *(cell for peer in peers for cell in (peer, "ratio", "goal")))
    rows = []
    for c in comparisons:
        for measure, by_engine in c.speeds.items():
            row = [c.model, str(c.threads), measure, spread(by_engine[MODELC.name])]
            for peer in peers:
                row += _beside(peer, measure, c.model, by_engine)
            rows.append(tuple(row))
    return Table("Speed", head, tuple(rows))


def spread(figure: Figure, digits: int = 3) -> str:
    """Median and range, to so many significant digits."""
    median, low, high = (_rounded(x, digits) for x in (figure.median, figure.low, figure.high))
    return median if len(figure.samples) == 1 else f"{median} ({low} to {high})"


def _rounded(value: float, digits: int) -> str:
    return f"{value:.0f}" if value >= 10 ** (digits - 1) else f"{value:#.{digits}g}".rstrip(".")


def _beside(peer: str, measure: str, model: str, by_engine: dict[str, Figure]) -> tuple[str, str, str]:
    if peer not in by_engine:
        return "", "", ""
    ratio = by_engine[MODELC.name].over(by_engine[peer])
    goal = goals.SPEED_RATIOS.get((measure, peer, model))
    return spread(by_engine[peer]), spread(ratio), goal.verdict(ratio.median) if goal else ""


def _limits_table(comparisons: Sequence[Comparison]) -> Table:
    head = ("model", "threads", "stream-read GB/s", "decode / stream-read", "goal", "decode at 1000 / at 100", "goal")
    rows = []
    for c in comparisons:
        stream, context = c.stream_share, c.long_context_share
        verdicts = goals.STREAM_SHARE.verdict(stream.median), goals.LONG_CONTEXT_SHARE.verdict(context.median)
        cells = spread(c.stream.times(1e-9)), spread(stream), verdicts[0], spread(context), verdicts[1]
        rows.append((c.model, str(c.threads), *cells))
    return Table("modelc against the machine's limits", head, tuple(rows))


def _start_table(start: Start) -> Table:
    rows = [
        _timed("`modelc --help`, s", start.help_s, goals.HELP_S),
        _timed("start of `modelc run` to a request's first token, s", start.first_token_s, goals.FIRST_TOKEN_S),
        _timed("the same at the first start ever, s", start.first_start_s, goals.FIRST_START_S),
        _timed("opening the GGUF file, ms", start.open_gguf_s.times(1e3), goals.OPEN_GGUF_MS),
    ]
    if start.memory is not None:
        above, resident, proportional, anonymous, file = (
            f"{size / 1e6:.0f}"
            for size in (
                start.memory.above_file,
                start.memory.resident,
                start.memory.proportional,
                start.memory.anonymous,
                start.memory.file,
            )
        )
        rows += [
            (
                "resident memory of `modelc run` above the file's size, MB",
                above,
                goals.MEMORY_ABOVE_FILE_MB.verdict(start.memory.above_file / 1e6),
            ),
            (
                "resident / proportional / anonymous / size of the file, MB",
                f"{resident} / {proportional} / {anonymous} / {file}",
                "",
            ),
        ]
    return Table("Start and memory (Q4_1)", ("figure", "median", "goal"), tuple(rows))


def _timed(label: str, figure: Figure, goal: Goal) -> tuple[str, str, str]:
    return label, spread(figure), goal.verdict(figure.median)


def _accuracy_table(divergences: dict[str, float]) -> Table:
    rows = []
    for name, value in divergences.items():
        goal = goals.DIVERGENCES.get(name)
        rows.append((name, f"{value:.3g}", goal.verdict(value) if goal else ""))
    return Table("Mean KL divergence to a float64 forward (Q4_1)", ("engine", "nats", "goal"), tuple(rows))


def _conditions_table(results: Results) -> Table:
    rows = [("date", results.date), *results.machine.items(), *results.versions.items()]
    rows += [(f"{engine} is", detail) for engine, detail in results.details.items()]
    if results.idle_shares:
        shares = ", ".join(f"{engine} {share:.3f}" for engine, share in results.idle_shares.items())
        busy = any(share > BUSY_SHARE for share in results.idle_shares.values())
        rows.append(
            ("cores kept busy in others' turns", shares + (": TOO MUCH, figures are disturbed" if busy else ""))
        )
    return Table("Conditions", ("what", "value"), tuple(rows))
