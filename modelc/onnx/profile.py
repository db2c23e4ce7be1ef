"""Where the time of a graph goes, by operator."""

from __future__ import annotations

from collections import defaultdict

from modelc.formats.onnx_plan import Node


class Profile:
    """Counts seconds of nodes."""

    def __init__(self) -> None:
        self._operators: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
        self._nodes: dict[str, float] = defaultdict(float)
        self.runs = 0

    def add(self, node: Node, seconds: float) -> None:
        """`node` took so long."""
        entry = self._operators[f"{node.domain}.{node.op}" if node.domain else node.op]
        entry[0] += 1
        entry[1] += seconds
        self._nodes[node.title] += seconds

    def report(self) -> str:
        """A table for people."""
        total = sum(seconds for _, seconds in self._operators.values())
        if not self.runs or not total:
            return "profile: nothing ran"
        lines = [f"profile: {self.runs} runs, {total:.3f} s in nodes"]
        lines.append(f"  {'operator':<32}{'calls':>10}{'ms':>12}{'share':>8}")
        for name, (calls, seconds) in sorted(self._operators.items(), key=lambda item: -item[1][1]):
            lines.append(f"  {name:<32}{int(calls):>10}{1e3 * seconds:>12.2f}{seconds / total:>8.1%}")
        lines.append(f"  {'slowest nodes':<42}{'ms':>12}{'share':>8}")
        for title, seconds in sorted(self._nodes.items(), key=lambda item: -item[1])[:10]:
            lines.append(f"  {title[:42]:<42}{1e3 * seconds:>12.2f}{seconds / total:>8.1%}")
        return "\n".join(lines)
