"""Prints what becomes of the `onnx` package's own node cases: `python -m conformance.onnx [PART OF A NAME]`."""

import sys
import warnings
from collections import Counter

from conformance.onnx.cases import node_cases, outcomes
from modelc.onnx.machine import Machine


def main() -> int:
    """Run the cases; the exit code is 1 when an answer is wrong."""
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(outcomes([case for case in node_cases() if part in case.name], Machine(1)))
    for domain in sorted({outcome.domain for outcome in found}):
        counts = Counter(outcome.status for outcome in found if outcome.domain == domain)
        shares = ", ".join(f"{count} {status} ({count / counts.total():.1%})" for status, count in counts.most_common())
        print(f"{domain or 'ai.onnx'}: {counts.total()} cases: {shares}")
    for outcome in found:
        if outcome.status != "right":
            print(f"{outcome.status:<12}{outcome.name}: {outcome.detail}")
    return int(any(outcome.status not in ("right", "unsupported") for outcome in found))


if __name__ == "__main__":
    sys.exit(main())
